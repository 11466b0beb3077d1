# Two commits, both applied, and a checkout of the first.
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
cat > desired_state/orders/search.yaml <<end
owner: search

quotas:
  - user: search
    limits: {consumer_byte_rate: 20 MiB}
  - client-id: old-etl
    limits: {consumer_byte_rate: 20 MiB}
end
git add . && git commit -qm 'The quotas of orders' && git branch -q -M main
cp ~/.config/quota-ops/connections/demo.properties ~/.config/quota-ops/connections/orders.properties
quota-ops reconcile orders
perl -pi -e 's/10 MiB/11 MiB/' desired_state/orders/checkout.yaml && git commit -qam 'More for checkout'
quota-ops reconcile orders
git checkout -q HEAD~1

# before: A damaged ledger
git checkout -q main

# before: A lost ledger
# Lose the ledger.
rm -r $ledger

# before: An old ledger
# Three more runs, and the copy that was made after the first put back.
quota-ops reconcile orders
cp -a $ledger ~/backup
perl -ni -e 's/11 MiB/12 MiB/; print unless /returns/..eof' desired_state/orders/checkout.yaml
perl -ni -e 'print unless /old-etl/..eof' desired_state/orders/search.yaml
git commit -qam 'More for checkout, nothing for returns; search looks after old-etl itself'
quota-ops release orders --from-ledger --names client-id=old-etl --reason 'search does' --by anna
quota-ops reconcile orders --allow unlimited --reason 'returns is gone'
perl -pi -e 's/12 MiB/13 MiB/' desired_state/orders/checkout.yaml
git commit -qam 'More for checkout'
rm -r $ledger && cp -a ~/backup $ledger

# before: Move the run store
# A store at another path, with a hold.
cp -a ~/.local/state/quota-ops/store ~/old
export QUOTA_OPS_RUN_STORE=~/old
quota-ops hold orders --names user=search --until 2h --reason 'INC-31' --by anna

# before: A rebuilt cluster
unset QUOTA_OPS_RUN_STORE
# The brokers of kafka-1 have another id.
sed 's/^bootstrap.servers=.*/bootstrap.servers=kafka-1:9094/' \
  ~/.config/quota-ops/connections/admin.properties > ~/.config/quota-ops/connections/orders.properties
