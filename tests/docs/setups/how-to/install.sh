# Quotas that a cluster of yours may already store.
quota-ops reconcile demo --allow default_touched --reason 'the first run'
