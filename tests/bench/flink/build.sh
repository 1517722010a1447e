#!/usr/bin/env bash
# Gets Flink with pip (its jars ship in apache-flink-libraries) and compiles the jobs into the cache folder.
# Needs: pip, python3, a JDK 11 or 17. Settings: FLINK_VERSION, FLINK_BENCH_CACHE (see common.sh).
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
. "$HERE/common.sh"

fetch() { # the wheel, and out of it the jars and the scripts
  mkdir -p "$CACHE/pip" "$CACHE/dist"
  pip download -q --no-deps --only-binary :all: -d "$CACHE/pip" "apache-flink-libraries==$VERSION"
  python3 - "$CACHE" "$VERSION" <<'P'
import glob, sys, zipfile
cache, version = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(f"{cache}/pip/apache_flink_libraries-{version}-*.whl")[0])
wheel.extractall(f"{cache}/dist", [n for n in wheel.namelist() if n.startswith(("pyflink/lib/", "pyflink/bin/"))])
P
  rm -rf "$CACHE/pip"
}

compile() { # into a folder of its own, so that a failed build leaves the last good jar
  local tmp
  tmp=$(mktemp -d "$CACHE/build.XXXXXX")
  trap 'rm -rf "$tmp"' RETURN
  javac -Xlint:-options -nowarn -d "$tmp/classes" -cp "$(echo "$LIB"/flink-dist-*.jar)" "$HERE"/src/fb/*.java || return
  jar --create --file "$tmp/jobs.jar" --main-class fb.Main -C "$tmp/classes" . || return
  mv "$tmp/jobs.jar" "$JOBS"
}

compgen -G "$LIB/flink-dist-*.jar" >/dev/null || fetch
compile
echo "built $JOBS"
