# Write the quotas of the cluster demo.
quota-ops reconcile demo --allow default_touched --reason 'the first run'
