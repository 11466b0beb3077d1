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

# before: See what happened over time
# An alter, and a run that repaired it.
sleep 1
quota-ops alter orders --names user=checkout --add 'producer_byte_rate=24 MiB' --reason INC-31 --by anna
sleep 1
quota-ops plan orders
sleep 1
quota-ops reconcile orders
