"""Rules that flag questionable quotas: codes, rules of entities, rules of clusters."""
