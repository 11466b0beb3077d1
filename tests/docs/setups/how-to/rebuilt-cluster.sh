# A cluster of another id, and a plan that waits.
git rm -rq desired_state/demo
mkdir desired_state/orders
cat > desired_state/orders/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: orders
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
cd ~/.config/quota-ops/connections
cp demo.properties orders.properties
cd ~/quota-ops
quota-ops reconcile orders
perl -pi -e 's/10 MiB/12 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'More for checkout'
quota-ops plan orders
waiting=$(ls -td ~/.local/state/quota-ops/store/runs/orders/* | head -1)
cd ~/.config/quota-ops/connections
sed 's/^bootstrap.servers=.*/bootstrap.servers=kafka-1:9094/' admin.properties > orders.properties
cd ~/quota-ops
