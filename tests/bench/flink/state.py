#!/usr/bin/env python3
"""Large keyed state and failures on the standalone cluster (see cluster.sh).

state.py big BACKEND [KEYS]          fill, full and incremental checkpoints, savepoint, restore
state.py kill BACKEND KEYS [k=v ..]  kill -9 of the TaskManager that runs the job; k=v are Flink settings
state.py startup                     submission to first record, idle memory
Prints one JSON line for each measurement.
"""
import json
import os
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = os.environ.get("REST_PORT", "8081")
HOME_CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
CACHE = os.environ.get("FLINK_BENCH_CACHE", os.path.join(HOME_CACHE, "millstream-flink"))
DIR = os.environ.setdefault("DIR", os.path.join(CACHE, "cluster"))
OUT = os.environ.get("OUT", os.path.join(CACHE, "out", "state-%d" % os.getpid()))


def say(**k):
    print(json.dumps(k), flush=True)


def rest(path, body=None):
    r = urllib.request.Request("http://127.0.0.1:%s%s" % (PORT, path))
    if body is not None:
        r.data = json.dumps(body).encode()
        r.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(r, timeout=30) as f:
        return json.load(f)


def cancel(job):
    url = "http://127.0.0.1:%s/jobs/%s?mode=cancel" % (PORT, job)
    urllib.request.urlopen(urllib.request.Request(url, method="PATCH"), timeout=30).read()


def sh(*a, out=None, env=None):
    e = dict(os.environ, **(env or {}))
    if out:
        os.makedirs(out, exist_ok=True)
        e["OUT"] = out
    return subprocess.run([os.path.join(HERE, "cluster.sh"), *a], env=e, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def events(out):
    try:
        with open(os.path.join(out, "events.txt")) as f:
            return [(int(a), int(b), c) for a, b, c in (l.strip().split(" ", 2) for l in f)]
    except FileNotFoundError:
        return []


def wait_event(out, what, after=0, limit=300):
    end = time.time() + limit
    while time.time() < end:
        for t, pid, w in events(out):
            if w.startswith(what) and t > after:
                return t, pid, w
        time.sleep(0.02)
    raise SystemExit("no event %s in %s" % (what, out))


def rss(pid):
    with open("/proc/%d/status" % pid) as f:
        return [int(l.split()[1]) // 1024 for l in f if l.startswith("VmRSS")][0]


def pids():
    return {f[:-4]: int(open(os.path.join(DIR, f)).read()) for f in sorted(os.listdir(DIR)) if f.endswith(".pid")}


def operation(path, body, status):
    t0 = time.time()
    trig = rest(path, body)["request-id"]
    while True:
        s = rest(status % trig)
        if s["status"]["id"] == "COMPLETED":
            return time.time() - t0, s["operation"]
        time.sleep(0.02)


def checkpoint(job, kind, label):
    secs, op = operation("/jobs/%s/checkpoints" % job, {"checkpointType": kind}, "/jobs/%s/checkpoints/%%s" % job)
    c = rest("/jobs/%s/checkpoints" % job)["latest"]["completed"]
    d = rest("/jobs/%s/checkpoints/details/%d" % (job, c["id"]))
    say(what="checkpoint", label=label, kind=kind, rest_s=round(secs, 2), failure=op.get("failureCause"), duration_ms=c["end_to_end_duration"],
        state_mb=round(c["state_size"] / 1e6, 1), written_mb=round(c["checkpointed_size"] / 1e6, 1))
    return c


def samples(out):
    rows = []
    for f in os.listdir(out):
        if f.startswith("meter-"):
            last = 0
            for l in open(os.path.join(out, f)):
                p = l.split(",")
                if len(p) == 7 and p[0].isdigit():
                    rows.append((int(p[0]), int(p[3]) - last))
                    last = int(p[3])
    return sorted(rows)


def rate_between(out, a, b):
    return sum(n for t, n in samples(out) if a <= t < b) / ((b - a) / 1000)


def big(backend, keys=10_000_000):
    extra = ["taskmanager.memory.managed.fraction=0.1"] if backend == "hashmap" else []
    os.environ.setdefault("TMMEM", "10g")
    sh("start", "1", "2", *extra)
    try:
        out = OUT + "-a"
        args = ["state", "--p", "2", "--backend", backend, "--keys", str(keys), "--hot", str(keys // 10), "--n", "1000000000000",
                "--checkpoint", "86400s", "--fast", str(keys), "--rate", "50000", "--sample-ms", "100"]
        job = sh("submit", *args, out=out)
        first = wait_event(out, "first-sink")[0]
        filled = wait_event(out, "store-filled", limit=600)[0]
        say(what="fill", backend=backend, keys=keys, secs=(filled - first) / 1e3, keys_per_s=round(keys / ((filled - first) / 1e3)))
        time.sleep(5)
        tm = pids()["tm-0"]
        say(what="rss", backend=backend, tm_mb=rss(tm))
        checkpoint(job, "FULL", backend + " 1st")
        time.sleep(5)
        checkpoint(job, "FULL", backend + " 2nd")
        if backend == "rocksdb":
            for k in range(3):
                time.sleep(10)
                checkpoint(job, "CONFIGURED", "rocksdb incremental, 10 s of updates at 50k/s")
        say(what="rss", backend=backend, tm_mb=rss(tm))
        paths = {}
        for fmt, stop in (("NATIVE", False), ("CANONICAL", True)):
            secs, op = operation("/jobs/%s/savepoints" % job,
                                 {"target-directory": "file://" + out + "/sp-" + fmt, "cancel-job": stop, "formatType": fmt},
                                 "/jobs/%s/savepoints/%%s" % job)
            path = op.get("location")
            size = 0
            for r, _, fs in os.walk(path.replace("file:", "") if path else "/nonexistent"):
                size += sum(os.path.getsize(os.path.join(r, f)) for f in fs)
            say(what="savepoint", backend=backend, format=fmt, secs=round(secs, 2), mb=round(size / 1e6), failure=op.get("failure-cause"))
            paths[fmt] = path
        time.sleep(2)
        for fmt in ("NATIVE", "CANONICAL"):
            o2 = OUT + "-r" + fmt
            t0 = time.time() * 1000
            job = sh("submit", *args, out=o2, env={"RESTORE": paths[fmt]})
            opened = wait_event(o2, "store-open")[0]
            f = wait_event(o2, "store-first")
            say(what="restore", backend=backend, format=fmt, submit_to_first_s=round((f[0] - t0) / 1e3, 2), open_to_first_s=round((f[0] - opened) / 1e3, 2), event=f[2])
            init = rest("/jobs/%s" % job)["vertices"]
            say(what="restore-states", seconds={v["name"][:40]: {k: round(x / 1e3, 2) for k, x in rest("/jobs/%s/vertices/%s" % (job, v["id"]))["subtasks"][0]["status-duration"].items() if x > 0} for v in init})
            cancel(job)
            time.sleep(4)
    finally:
        sh("stop")


def kill(backend, keys, *settings):
    os.environ.setdefault("TMMEM", "3g")
    p = int(os.environ.get("P", "1"))
    sh("start", str(p + 1), "1", *settings)
    try:
        out = OUT + "-k"
        job = sh("submit", "state", "--p", str(p), "--backend", backend, "--keys", str(keys), "--n", "1000000000000", "--checkpoint", "5s",
                 "--fast", str(keys), "--rate", "50000", "--sample-ms", "20", out=out)
        _, _, _ = wait_event(out, "store-filled")
        time.sleep(13)
        victims = [q for _, q, w in events(out) if w == "store-open"]
        victim = victims[-1]
        assert victim in pids().values()
        t0 = int(time.time() * 1000)
        os.kill(victim, 9)
        opened = wait_event(out, "store-open", after=t0)
        first = wait_event(out, "store-first", after=t0)
        time.sleep(3)
        flow = [t for t, n in samples(out) if n > 0]
        before = max(t for t in flow if t <= t0 + 200)
        after = min(t for t in flow if t > max(opened[0], t0))
        h = rest("/jobs/%s/exceptions" % job)["exceptionHistory"]["entries"]
        say(what="kill", backend=backend, keys=keys, p=p, settings=settings, kill_to_restarted_open_s=(opened[0] - t0) / 1e3,
            kill_to_first_record_s=(first[0] - t0) / 1e3, gap_at_sink_s=(after - before) / 1e3,
            detected_s=[round((e["timestamp"] - t0) / 1e3, 2) for e in h], cause=[e["exceptionName"] + ": " + e["stacktrace"].split("\n")[0][-160:] for e in h])
    finally:
        sh("stop")


def startup():
    sh("start", "1", "2")
    try:
        time.sleep(20)
        say(what="idle", rss_mb={k: rss(v) for k, v in pids().items()})
        for k in range(4):
            out = OUT + "-s%d" % k
            t0 = time.time() * 1000
            sh("run", "map", "--p", "1", "--n", "1000", "--warm", "0", out=out)
            t1 = time.time() * 1000
            ev = {w: t for t, _, w in events(out)}
            say(what="startup", run=k, command_to_main_execute_s=round((ev["execute"] - t0) / 1e3, 2),
                command_to_first_record_s=round((ev["first-sink"] - t0) / 1e3, 2), command_to_exit_s=round((t1 - t0) / 1e3, 2))
        say(what="after jobs", rss_mb={k: rss(v) for k, v in pids().items()})
    finally:
        sh("stop")


if __name__ == "__main__":
    a = sys.argv[1:]
    if a[:1] == ["big"]:
        big(a[1], *(int(x) for x in a[2:]))
    elif a[:1] == ["kill"]:
        kill(a[1], int(a[2]), *a[3:])
    elif a[:1] == ["startup"]:
        startup()
    else:
        sys.exit(__doc__)
