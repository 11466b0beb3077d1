# A cluster with one quota, written by a first run.
git rm -rq desired_state/demo
mkdir desired_state/orders
cat > desired_state/orders/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
end
cat > desired_state/orders/checkout.yaml <<end
owner: checkout

quotas:
  - user: checkout
    limits: {producer_byte_rate: 10 MiB}
end
git add . && git commit -qm 'The quotas of orders'
quota-ops reconcile orders

# before: Roll back a run
# A run that raised a limit.
perl -pi -e 's/10 MiB/12 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'More for checkout'
quota-ops reconcile orders

# before: Pause all writes
git revert --no-edit HEAD
