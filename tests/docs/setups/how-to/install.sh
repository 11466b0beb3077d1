# Quotas that a cluster of yours may already store.
quota-ops reconcile demo --allow default_touched --reason 'the first run'

# before: 4. Start from what the cluster stores
cp ~/.config/quota-ops/connections/demo.properties ~/.config/quota-ops/connections/payments.properties
export QUOTA_OPS_RUN_STORE=~/payments-store
