# Quotas that a cluster of yours may already store.
quota-ops reconcile demo --allow default_touched --reason 'the first run'

# before: 4. Start from what the cluster stores
cp ~/.config/quota-ops/connections/demo.properties ~/.config/quota-ops/connections/payments.properties
export QUOTA_OPS_RUN_STORE=~/payments-store

# before: Grant the permissions
# A cluster orders, and a connection for each of the users admin, writer and reader.
cd ~/quota-ops
unset QUOTA_OPS_RUN_STORE
mkdir desired_state/orders
cat > desired_state/orders/cluster.yaml <<end
cluster_id: b3JkZXJzLWV1LWNsdXN0ZQ
connection: orders
end
cat > desired_state/orders/checkout.yaml <<end
owner: checkout

quotas:
  - user: checkout
    limits: {producer_byte_rate: 10 MiB}
end
git add desired_state && git commit -qm 'The quotas of orders'
cd ~/.config/quota-ops/connections
cp writer.properties orders.properties
cp admin.properties reader.properties ~/quota-ops
cd ~/quota-ops
