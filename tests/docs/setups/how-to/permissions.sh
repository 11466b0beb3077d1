# A cluster orders, and a connection for each of the users admin, writer and reader.
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
git add . && git commit -qm 'The quotas of orders'
cd ~/.config/quota-ops/connections
cp writer.properties orders.properties
cp admin.properties reader.properties ~/quota-ops
cd ~/quota-ops
