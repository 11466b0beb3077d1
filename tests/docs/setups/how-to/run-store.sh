# A run store with a run and a hold.
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
  - user: returns
    limits: {producer_byte_rate: 5 MiB}
end
git add . && git commit -qm 'The quotas of orders'
export QUOTA_OPS_RUN_STORE=~/old
quota-ops reconcile orders
quota-ops hold orders --names user=returns --until 2h --reason 'INC-31' --by anna
