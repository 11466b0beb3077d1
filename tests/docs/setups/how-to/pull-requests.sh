# What main has, a change outside Git, and the branch.
git checkout -q -B main
quota-ops reconcile demo --allow default_touched --reason 'the first run'
quota-ops alter demo --names user=bob --add request_percentage=20 --reason 'an incident'
git checkout -q -b more-for-alice
perl -pi -e 's/producer_byte_rate: 15 MiB/producer_byte_rate: 20 MiB/' desired_state/demo/payments.yaml
perl -pi -e 's/request_percentage: 100/request_percentage: 25/' desired_state/demo/platform.yaml
rm desired_state/demo/edge.yaml
git commit -qam 'More for alice, less for all, and no edge'
