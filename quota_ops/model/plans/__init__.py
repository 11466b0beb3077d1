"""Plans: what would change, the guards and the policy that judge it, and who may approve it."""
