#!/usr/bin/env bash
# run.sh NAME [--key value ...]        one job in one JVM with an embedded cluster (1 TaskManager, p slots)
# run.sh cluster TMS SLOTS NAME [...]  the same on a standalone cluster of processes on 127.0.0.1
# See cluster.sh for the parts of the second. Settings: HEAP (embedded JVM), OUT (folder for results), KEEP (leave checkpoints there).
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
. "$HERE/common.sh"
OUT=${OUT:-$CACHE/out/run-$$}
if [ "${1:-}" = cluster ]; then
  shift
  exec "$HERE/cluster.sh" job "$@"
fi
[ -f "$JOBS" ] || { echo "no $JOBS: run $HERE/build.sh first" >&2; exit 2; }
name=$1
shift
mkdir -p "$OUT"
rc=0
java -Xms"${HEAP:-4g}" -Xmx"${HEAP:-4g}" -XX:MaxDirectMemorySize=2g $OPENS -Dlog4j.configurationFile="$HERE/conf/log4j.properties" \
  -cp "$CP:$JOBS" fb.Main "$name" --out "$OUT" "$@" 2>"$OUT/stderr.txt" || rc=$?
[ "$rc" = 0 ] || tail -30 "$OUT/stderr.txt" >&2
[ -n "${KEEP:-}" ] || rm -rf "$OUT/ckpt" "$OUT/sp" "$OUT/tmp"
exit "$rc"
