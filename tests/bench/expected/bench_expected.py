#!/usr/bin/env python3
"""bench_expected.py [NAME...]: number and checksum of the output of each bench workload over a million records.

Computed from the definitions in ../flink/README.md alone, without Flink and without Millstream, and compared
with the committed bench_expected.json; exit code 1 when they differ. Only --write: that file is written anew.
"""
import json
import os
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "expected"))
import nexmark
from records import Checksum, below, checksum, fnv1a64, mix

RECORDS = 1_000_000
POOL = 4096
START = 1_700_000_000_000
EVENTS_PER_SECOND = 100_000
FILE = os.path.join(HERE, "bench_expected.json")


def pooled():
    """(position in the pool, how many of the records are it)."""
    return Counter(i % POOL for i in range(RECORDS)).items()


def map_():
    total = Checksum()
    for k, times in pooled():
        total.add(scaled(line(k)), times)
    return total.result()


def line(k):
    r = mix(k)
    head = "%010d,%06d,%013d,%06d," % (k, below(r, 1_000_000), START + k, below(mix(r), 1_000_000))
    return head.ljust(100, "x")


def scaled(text):
    fields = text.split(",")
    fields[3] = "%06d" % (int(fields[3]) * 908 // 1000)
    return ",".join(fields)


def shuffle():
    return checksum(payload(i) for i in range(RECORDS))


def payload(i):
    key = below(mix(i), 1_000_000)
    return key.to_bytes(8, "big") + i.to_bytes(8, "big") + bytes(83) + b"\x01"


VOCABULARY = 10_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def wordcount():
    """Every update is emitted: a word that stands in the input n times makes the counts 1 to n."""
    counts = Counter()
    for k, times in pooled():
        for q in range(10):
            counts[word_number(mix(10 * k + q))] += times
    total = Checksum()
    for w, count in counts.items():
        prefix = fnv1a64(("(%s," % word(w)).encode())
        for n in range(1, count + 1):
            total.add_hash(fnv1a64(b"%d)" % n, prefix))
    return total.result()


def word_number(r):
    """The product of two uniforms makes small numbers frequent."""
    return (r >> 48) * (r >> 32 & 0xFFFF) % (1 << 32) * VOCABULARY >> 32


def word(w):
    r = mix(1_000_000 + w)
    letters = nexmark.letters(r, (r & 7) + 1)
    n = 36 * 36 + w
    return letters + DIGITS[n // 36**2] + DIGITS[n // 36 % 36] + DIGITS[n % 36]


def events(keys):
    """(key, time, value), up to a second out of order."""
    for i in range(RECORDS):
        r = mix(i)
        time = START + i * 1000 // EVENTS_PER_SECOND - (r & 0xFFFF) * 1000 // 65536
        yield below(r, keys), time, r >> 16 & 0xFFFF


def window():
    size = 10_000
    groups = {}
    for key, time, value in events(100_000):
        end = time - time % size + size
        count, total, highest = groups.get((key, end), (0, 0, 0))
        groups[key, end] = count + 1, total + value, max(highest, value)
    return checksum("(%d,%d,(%d,%d),%d)" % (*group, *values) for group, values in groups.items())


def process():
    """Ten seconds of events, timers after thirty: none fires before the end, so each key emits once."""
    return checksum("(%d,%d)" % item for item in Counter(key for key, _, _ in events(1_000_000)).items())


def query(name):
    return lambda: checksum(map(nexmark.text, nexmark.QUERIES[name](nexmark.bids(RECORDS))))


WORKLOADS = {"map": map_, "shuffle": shuffle, "wordcount": wordcount, "window": window, "process": process}
WORKLOADS |= {name: query(name) for name in nexmark.QUERIES}


def main(arguments):
    write = arguments == ["--write"]
    names = list(WORKLOADS) if write or not arguments else arguments
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        sys.exit("no workload %s; there are %s" % (", ".join(unknown), ", ".join(WORKLOADS)))
    results = {}
    for name in names:
        results[name] = WORKLOADS[name]()
        print(name, results[name]["rows"], results[name]["checksum"], flush=True)
    if write:
        with open(FILE, "w") as file:
            file.write("{\n" + ",\n".join('  "%s": %s' % (k, json.dumps(v)) for k, v in results.items()) + "\n}\n")
        return 0
    with open(FILE) as file:
        committed = json.load(file)
    wrong = [name for name in names if committed.get(name) != results[name]]
    for name in wrong:
        print("%s: %s is committed" % (name, committed.get(name)), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
