# Two commits, both applied, and a checkout of the first.
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
git add . && git commit -qm 'The quotas of orders' && git branch -q -M main
quota-ops reconcile orders
perl -pi -e 's/10 MiB/12 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'More for checkout'
quota-ops reconcile orders
git checkout -q HEAD~1

# before: "commit … was applied since this plan was made"
git checkout -q main
# A plan that waits while another commit is applied.
perl -pi -e 's/12 MiB/13 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'A little more'
quota-ops plan orders
run=$(ls -td ~/.local/state/quota-ops/store/runs/orders/* | head -1)
perl -pi -e 's/13 MiB/14 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'And more'
quota-ops reconcile orders
