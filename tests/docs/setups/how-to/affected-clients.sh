# A cluster with two quotas, of which one changes.
git rm -rq desired_state/demo
mkdir desired_state/orders
cat > desired_state/orders/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
end
cat > desired_state/orders/platform.yaml <<end
owner: platform
quotas:
  - user: checkout
    limits: {producer_byte_rate: 10 MiB}
  - user: {default: true}
    limits: {producer_byte_rate: 5 MiB}
end
git add . && git commit -qm 'The quotas of orders'
quota-ops reconcile orders --allow default_touched --reason 'the first quotas'
perl -pi -e 's/5 MiB/2 MiB/' desired_state/orders/platform.yaml
# Two users of the cluster, for the first inventory.
python - <<end
from confluent_kafka import admin
scram = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)
users = [admin.UserScramCredentialUpsertion(name, scram, b"x") for name in ("checkout", "search")]
cluster = admin.AdminClient({"bootstrap.servers": "127.0.0.1:9092"})
[change.result(30) for change in cluster.alter_user_scram_credentials(users).values()]
end
# before: Read the effects
python - <<end
from confluent_kafka import admin
sha512 = admin.ScramMechanism.SCRAM_SHA_512
users = [admin.UserScramCredentialDeletion(name, sha512) for name in ("checkout", "search")]
cluster = admin.AdminClient({"bootstrap.servers": "127.0.0.1:9092"})
[change.result(30) for change in cluster.alter_user_scram_credentials(users).values()]
end
