# Alice's quota as it was.
rm -r desired_state/demo/*
cat > desired_state/demo/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
end
cat > desired_state/demo/payments.yaml <<end
owner: payments

quotas:
  - user: alice
    limits:
      producer_byte_rate: 10 MiB
    reason: card settlement
end
git add . && git commit -qm 'Give alice 10 MiB/s' && quota-ops reconcile demo
