#!/usr/bin/env bash
# A standalone cluster of processes on 127.0.0.1 only.
#   cluster.sh start TMS SLOTS [key=value ...]   1 JobManager and TMS TaskManagers; more settings as key=value
#   cluster.sh tm [key=value ...]                one more TaskManager
#   cluster.sh run NAME [--key value ...]        submit a job, wait for it, print its result line
#   cluster.sh submit NAME [--key value ...]     submit, do not wait (prints the job id)
#   cluster.sh rss | stop
#   cluster.sh job TMS SLOTS NAME [...]          start, run, stop
# Settings: DIR (the cluster's folder), TMMEM, JMMEM, OUT (results), RESTORE (savepoint to start from)
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
. "$HERE/common.sh"
DIR=${DIR:-$CACHE/cluster}
OUT=${OUT:-$CACHE/out/cluster-$$}
export FLINK_CONF_DIR="$DIR/conf"
MAINCP="$CP"

params() { # GET_TM_RESOURCE_PARAMS or GET_JM_RESOURCE_PARAMS
  java -cp "$(echo "$BIN"/bash-java-utils.jar):$CP" -Dlog4j.configurationFile="$HERE/conf/log4j.properties" \
    org.apache.flink.runtime.util.bash.BashJavaUtils "$1" --configDir "$FLINK_CONF_DIR" 2>/dev/null |
    sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p'
}

tm() {
  local i
  i=$(find "$DIR" -name "tm-*.pid" | wc -l)
  java $(head -1 "$DIR/tm.params") $OPENS -Dlog.file="$DIR/tm-$i.log" -Dlog4j.configurationFile="$HERE/conf/log4j.properties" \
    -cp "$MAINCP" org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$FLINK_CONF_DIR" \
    $(sed -n 2p "$DIR/tm.params") "$@" >"$DIR/tm-$i.out" 2>&1 &
  echo $! >"$DIR/tm-$i.pid"
}

case "$1" in
start)
  tms=$2 slots=$3
  shift 3
  rm -rf "$DIR" && mkdir -p "$DIR/conf" "$DIR/tmp"
  {
    cat <<C
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: ${RPC_PORT:-6123}
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: ${JMMEM:-1600m}
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.memory.process.size: ${TMMEM:-4g}
taskmanager.numberOfTaskSlots: $slots
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: ${REST_PORT:-8081}
io.tmp.dirs: $DIR/tmp
C
    for kv in "$@"; do echo "${kv%%=*}: ${kv#*=}"; done
  } >"$DIR/conf/config.yaml"
  params GET_JM_RESOURCE_PARAMS >"$DIR/jm.params"
  params GET_TM_RESOURCE_PARAMS >"$DIR/tm.params"
  java $(head -1 "$DIR/jm.params") $OPENS -Dlog.file="$DIR/jm.log" -Dlog4j.configurationFile="$HERE/conf/log4j.properties" \
    -cp "$MAINCP" org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$FLINK_CONF_DIR" \
    $(sed -n 2p "$DIR/jm.params") >"$DIR/jm.out" 2>&1 &
  echo $! >"$DIR/jm.pid"
  for ((k = 0; k < tms; k++)); do tm; done
  for ((k = 0; k < 600; k++)); do
    n=$(curl -s "http://127.0.0.1:${REST_PORT:-8081}/overview" 2>/dev/null | python3 -c 'import json,sys; print(json.load(sys.stdin)["taskmanagers"])' 2>/dev/null || echo 0)
    [ "$n" = "$tms" ] && break
    sleep 0.1
  done
  [ "$n" = "$tms" ] || { echo "only $n TaskManagers came up" >&2; tail -5 "$DIR"/*.out >&2; exit 1; }
  ;;
tm)
  shift
  tm "$@"
  ;;
run | submit)
  how=$1
  shift
  name=$1
  shift
  mkdir -p "$OUT"
  d=""
  [ "$how" = submit ] && d="-d"
  date +%s%3N >"$OUT/submit_ms"
  java $OPENS -Dlog4j.configurationFile="$HERE/conf/log4j.properties" -cp "$CP" org.apache.flink.client.cli.CliFrontend run $d \
    ${RESTORE:+-s "$RESTORE"} -c fb.Main "$JOBS" "$name" --local false --out "$OUT" "$@" 2>"$OUT/stderr.txt" |
    if [ "$how" = submit ]; then sed -n 's/.*JobID //p'; else grep '^{' || tail -20 "$OUT/stderr.txt" >&2; fi
  ;;
rss)
  for f in "$DIR"/*.pid; do
    echo "$(basename "$f" .pid) $(awk '/VmRSS|VmHWM/{printf "%s %d MB  ", $1, $2/1024}' "/proc/$(cat "$f")/status" 2>/dev/null)"
  done
  ;;
stop)
  for f in "$DIR"/*.pid; do kill "$(cat "$f")" 2>/dev/null || true; done
  for f in "$DIR"/*.pid; do
    for ((k = 0; k < 100; k++)); do
      kill -0 "$(cat "$f")" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$(cat "$f")" 2>/dev/null || true
    rm -f "$f"
  done
  ;;
job)
  tms=$2 slots=$3
  shift 3
  "$0" start "$tms" "$slots"
  "$0" run "$@" || true
  "$0" stop
  ;;
*)
  sed -n '2,12p' "$0"
  exit 2
  ;;
esac
