# A cluster with one quota.
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

# before: Approve a plan
# Every plan needs approval.
echo 'approval: always' >> desired_state/orders/cluster.yaml && git commit -qam 'Always require approval'
quota-ops reconcile orders --allow policy_changed --reason 'agreed in PLAT-13'
