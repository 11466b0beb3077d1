# A cluster with a ledger.
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
cat > desired_state/orders/search.yaml <<end
owner: search

quotas:
  - user: search
    limits: {consumer_byte_rate: 20 MiB}
  - client-id: old-etl
    limits: {consumer_byte_rate: 20 MiB}
end
git add . && git commit -qm 'The quotas of orders'
quota-ops reconcile orders

# before: A lost ledger: "No ledger of this cluster yet"
# Lose the ledger, but keep a copy.
cp -a $ledger ~/backup && rm -r $ledger

# before: An old ledger: "based on an older copy of the ledger"
# Two more runs, and last week's copy put back.
perl -ni -e 's/10 MiB/12 MiB/; print unless /returns/..eof' desired_state/orders/checkout.yaml
perl -ni -e 'print unless /old-etl/..eof' desired_state/orders/search.yaml
git commit -qam 'More for checkout, nothing for returns; search looks after old-etl itself'
quota-ops release orders --from-ledger --names client-id=old-etl --reason 'search does' --by anna
quota-ops reconcile orders --allow unlimited --reason 'returns is gone'
perl -pi -e 's/12 MiB/13 MiB/' desired_state/orders/checkout.yaml
git commit -qam 'More for checkout'
rm -r $ledger && cp -a ~/backup $ledger
