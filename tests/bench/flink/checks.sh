#!/usr/bin/env bash
# checks.sh: order-independent checksums of every job's output for N records, with p=1 and p=2.
set -uo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
. "$HERE/common.sh"
N=${N:-1000000}
OUT=$CACHE/out/check-$$
for j in map shuffle wordcount window process async q0 q1 q2 q3 q5 q7 q8; do
  for p in 1 2; do
    echo "p=$p $(OUT="$OUT" HEAP=2g "$HERE/run.sh" $j --p $p --n "$N" --check true | grep '^check')"
    rm -rf "$OUT"
  done
done
