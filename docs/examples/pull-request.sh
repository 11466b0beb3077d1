#!/bin/sh
# Asks each cluster what the checked-out quotas would change, and leaves the answer in comment.md.
# Ends with the exit code of `quota-ops report`. LEDGER names a copy of the run store's folder
# `ledger`; without it nobody can see that a quota was removed.
set -eu
QUOTA_OPS_RUN_STORE=$(mktemp -d)
export QUOTA_OPS_RUN_STORE
if [ -n "${LEDGER:-}" ]; then
  cp -R "$LEDGER" "$QUOTA_OPS_RUN_STORE/ledger"
fi
ended=0
: >comment.md
for file in desired_state/*/cluster.yaml; do
  cluster=$(basename "$(dirname "$file")")
  quota-ops report "$cluster" || ended=$?
  cat "$QUOTA_OPS_RUN_STORE/runs/$cluster"/*/report.md >>comment.md
done
exit "$ended"
