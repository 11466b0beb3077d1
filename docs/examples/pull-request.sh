#!/bin/sh
# Compares the checked-out quotas with each cluster and writes the result to comment.md. A report that is too
# long for a GitHub comment is cut to its first line. Exits with the highest exit code of `quota-ops check` and
# `quota-ops report`. QUOTA_OPS_RUN_STORE names the run store that all runs use; it is only read. The reports
# are written to the folder OUT, by default a temporary one.
set -eu
OUT=${OUT:-$(mktemp -d)}
ended=0
quota-ops check || ended=$? # a link, for example, fails here and has no report
room=60000 # of 65,536 characters in a comment; the rest is for first lines
: >comment.md
for file in desired_state/*/cluster.yaml; do
  cluster=$(basename "$(dirname "$file")")
  code=0
  quota-ops report --out "$OUT/$cluster" -- "$cluster" || code=$?
  [ "$code" -le "$ended" ] || ended=$code
  report="$OUT/$cluster/report.md"
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
