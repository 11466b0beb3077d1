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
