#!/usr/bin/env bash
# suite.sh FILE: one pass over the embedded runs; appends "label<TAB>result line" to FILE.
# Settings: SECS (a run's length), WARM (left out of it), QUIET (seconds to wait for an idle machine), ONLY (a regular expression on labels)
set -uo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
. "$HERE/common.sh"
FILE=$1
SECS=${SECS:-60} WARM=${WARM:-30} QUIET=${QUIET:-15}
run() { # label job args...
  local label=$1 r
  shift
  [[ $label =~ ${ONLY:-.} ]] || return 0
  "$HERE/wait-quiet.sh" "$QUIET" 0.3 || true
  r=$(OUT="$CACHE/out/suite-$$" timeout 150 "$HERE/run.sh" "$@" --n 100000000000 --secs "$SECS" --warm "$WARM" 2>&1 | tail -1)
  printf '%s\t%s\t%s\n' "$(date +%H:%M:%S)" "$label" "$r" | tee -a "$FILE"
  rm -rf "$CACHE/out/suite-$$"
}
CK="--checkpoint 10s"
for p in 1 2; do for r in true false; do run "map p$p reuse=$r" map --p $p --reuse $r; done; done
for r in true false; do run "shuffle p2 1tm reuse=$r" shuffle --p 2 --reuse $r; done
for r in true false; do run "wordcount hashmap p2 reuse=$r" wordcount --p 2 --reuse $r $CK; done
run "wordcount rocksdb p2 reuse=true" wordcount --p 2 --backend rocksdb $CK
run "window hashmap p1 reuse=true" window --p 1 $CK
for r in true false; do run "window hashmap p2 reuse=$r" window --p 2 --reuse $r $CK; done
run "process hashmap p1 reuse=true" process --p 1 $CK
for r in true false; do run "process hashmap p2 reuse=$r" process --p 2 --reuse $r $CK; done
run "process rocksdb p2 reuse=true" process --p 2 --backend rocksdb $CK
for p in 1 2; do run "async p$p" async --p $p; done
for q in q0 q1 q2; do
  for p in 1 2; do run "$q p$p reuse=true" $q --p $p; done
  run "$q p2 reuse=false" $q --p 2 --reuse false
done
for q in q3 q5 q7 q8; do
  for p in 1 2; do run "$q p$p reuse=true" $q --p $p $CK; done
  run "$q p2 reuse=false" $q --p 2 --reuse false $CK
done
for t in 100ms 1ms 0ms; do
  run "latency p2 50k/s 1tm timeout=$t" latency --p 2 --rate 50000 --buffer-timeout $t --lat-warm $WARM
done
