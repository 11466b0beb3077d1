#!/bin/sh
# Compares the checked-out quotas with each cluster and writes the result to comment.md. A report that is too
# long for a GitHub comment is cut to its first line. Exits with the highest exit code of `quota-ops check` and
# `quota-ops report`. LEDGER is a copy of the run store's folder `ledger`, next to a copy of `ledger_ends`;
# without it, the comment cannot show that a quota was removed.
set -eu
QUOTA_OPS_RUN_STORE=$(mktemp -d)
export QUOTA_OPS_RUN_STORE
if [ -n "${LEDGER:-}" ]; then
  cp -R "$LEDGER" "$QUOTA_OPS_RUN_STORE/ledger"
  cp -R "${LEDGER}_ends" "$QUOTA_OPS_RUN_STORE/ledger_ends" # detects an outdated copy
fi
ended=0
quota-ops check || ended=$? # a link, for example, fails here and has no report
room=60000 # of 65,536 characters in a comment; the rest is for first lines
: >comment.md
for file in desired_state/*/cluster.yaml; do
  cluster=$(basename "$(dirname "$file")")
  code=0
  quota-ops report -- "$cluster" || code=$?
  [ "$code" -le "$ended" ] || ended=$code
  report=$(echo "$QUOTA_OPS_RUN_STORE/runs/$cluster"/*/report.md)
  if [ ! -f "$report" ]; then
    printf '%s: no report; see the log of this job.\n\n' "$cluster" >>comment.md
    continue
  fi
  size=$(LC_ALL=C.UTF-8 wc -m <"$report")
  if [ "$size" -le "$room" ]; then
    room=$((room - size))
    { cat "$report" && echo; } >>comment.md
  else
    head -n 1 "$report" >>comment.md
    printf '\nToo long for this comment; see the log of this job.\n\n' >>comment.md
  fi
done
exit "$ended"
