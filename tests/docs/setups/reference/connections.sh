# before: Private links
# The line in cluster.yaml.
echo 'verify: bootstrap' >> desired_state/demo/cluster.yaml
