# The files of other tools.
cat > kafkausers.yaml <<'END'
kind: KafkaUser
metadata: {name: alice}
spec: {authentication: {type: scram-sha-512}, quotas: {producerByteRate: 1048576}}
END
cat > quotas.yaml <<'END'
kind: KafkaClientQuota
spec: {type: USER, entity: {user: alice}, configs: {producerByteRate: 1048576}}
END
cat > terraform.tfstate <<'END'
{"version": 4, "resources": [{"mode": "managed", "type": "kafka_quota", "name": "q", "instances": [
  {"attributes": {"config": {"producer_byte_rate": 1048576}, "entity_name": "alice", "entity_type": "user"}}]}]}
END
cat > described.txt <<'END'
Quota configs for user-principal 'alice' are producer_byte_rate=1048576.0
END
