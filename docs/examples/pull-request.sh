#!/bin/sh
# Asks each cluster what the checked-out quotas would change, and leaves the answer in comment.md,
# which GitHub takes: of what has no room in it only the first line. Ends with the highest exit code
# of `quota-ops check` and `report`. LEDGER names a copy of the run store's folder `ledger`, beside a copy of
# `ledger_ends`; without it nobody can see that a quota was removed.
set -eu
QUOTA_OPS_RUN_STORE=$(mktemp -d)
export QUOTA_OPS_RUN_STORE
if [ -n "${LEDGER:-}" ]; then
  cp -R "$LEDGER" "$QUOTA_OPS_RUN_STORE/ledger"
  cp -R "${LEDGER}_ends" "$QUOTA_OPS_RUN_STORE/ledger_ends" # by it an older copy is noticed
fi
ended=0
quota-ops check || ended=$? # what is no cluster at all, such as a link, has no report
room=60000 # a comment has 65,536 characters; the rest is for first lines
: >comment.md
for file in desired_state/*/cluster.yaml; do
  cluster=$(basename "$(dirname "$file")")
  code=0
  quota-ops report -- "$cluster" || code=$?
  [ "$code" -le "$ended" ] || ended=$code
  report=$(echo "$QUOTA_OPS_RUN_STORE/runs/$cluster"/*/report.md)
  if [ ! -f "$report" ]; then
    printf '%s: no report; the log of this job says why.\n\n' "$cluster" >>comment.md
    continue
  fi
  size=$(LC_ALL=C.UTF-8 wc -m <"$report")
  if [ "$size" -le "$room" ]; then
    room=$((room - size))
    { cat "$report" && echo; } >>comment.md
  else
    head -n 1 "$report" >>comment.md
    printf '\nToo long for this comment; the log of this job says more.\n\n' >>comment.md
  fi
done
exit "$ended"
