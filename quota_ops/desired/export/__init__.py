"""Export: YAML files written from the quotas that a cluster stores."""
