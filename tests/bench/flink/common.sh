# Folders, class path and JVM flags; sourced by the scripts.
#   FLINK_BENCH_CACHE  where Flink, the compiled jobs and results go: never into the source tree
#   FLINK_LIB          the jars of an installed Flink, instead of the downloaded ones; FLINK_BIN its scripts
VERSION=${FLINK_VERSION:-2.3.0}
CACHE=${FLINK_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millstream-flink}
LIB=${FLINK_LIB:-$CACHE/dist/pyflink/lib}
BIN=${FLINK_BIN:-$CACHE/dist/pyflink/bin}
JOBS=$CACHE/jobs.jar
CP="$(echo "$LIB"/flink-dist-*.jar):$(echo "$LIB"/log4j-*.jar | tr ' ' ':')"
OPENS=""
for m in java.rmi/sun.rmi.registry jdk.compiler/com.sun.tools.javac.api jdk.compiler/com.sun.tools.javac.file \
  jdk.compiler/com.sun.tools.javac.parser jdk.compiler/com.sun.tools.javac.tree jdk.compiler/com.sun.tools.javac.util; do
  OPENS="$OPENS --add-exports=$m=ALL-UNNAMED"
done
for m in java.base/java.lang java.base/java.net java.base/java.io java.base/java.nio java.base/sun.nio.ch \
  java.base/java.lang.reflect java.base/java.text java.base/java.time java.base/java.util java.base/java.util.concurrent \
  java.base/java.util.concurrent.atomic java.base/java.util.concurrent.locks; do
  OPENS="$OPENS --add-opens=$m=ALL-UNNAMED"
done
