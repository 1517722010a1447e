#!/usr/bin/env python3
"""compare.py OUTPUT EXPECTED [--last COLUMN]: whether a job's JSON lines are the expected rows, in any order.

OUTPUT is a file or a sink's folder. EXPECTED is a file of rows (.jsonl; numbers may differ by 1e-9) or of
their digest (.json; `sha256` over sorted lines or the bench's `checksum`). With --last only the last row of
each value of COLUMN counts: for a job that emits every update. Exit code 1 when they differ.
"""
import json
import math
import os
import sys

import nexmark
import records
import rows

SHOWN = 10


def main(output, expected, last=None):
    found = list(read(output))
    if last:
        found = list({row[last]: row for row in found}.values())
    want = json.load(open(expected)) if expected.endswith(".json") else None
    if want is None:
        differences = compare(found, list(read(expected)))
    elif "sha256" in want:
        differences = digests(rows.digest(rows.lines(found)), want)
    else:
        differences = digests(records.checksum(map(nexmark.text, found)), want)
    for line in differences[:SHOWN]:
        print(line)
    print("%d rows, %s" % (len(found), "%d differences" % len(differences) if differences else "as expected"))
    return 1 if differences else 0


def read(path):
    """Rows of a file, or of all files of a folder whose names do not begin with a dot."""
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            if not name.startswith("."):
                yield from read(os.path.join(path, name))
        return
    with open(path) as file:
        for line in file:
            yield json.loads(line)


def compare(found, expected):
    """Lines that say which rows are in one only; rows meet in the order of their exact values."""
    found, expected = sorted(found, key=exact), sorted(expected, key=exact)
    differences = []
    i = j = 0
    while i < len(found) or j < len(expected):
        if i < len(found) and j < len(expected) and same(found[i], expected[j]):
            i, j = i + 1, j + 1
        elif j == len(expected) or (i < len(found) and exact(found[i]) <= exact(expected[j])):
            differences.append("unexpected: " + json.dumps(found[i]))
            i += 1
        else:
            differences.append("missing: " + json.dumps(expected[j]))
            j += 1
    return differences


def exact(row):
    """An order in which a rounding error moves no row: by texts and whole numbers."""
    return [(name, str(value)) for name, value in sorted(row.items()) if not isinstance(value, float)]


def same(a, b):
    return a.keys() == b.keys() and all(close(a[name], b[name]) for name in a)


def close(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def digests(found, expected):
    return ["%s: found %s, expected %s" % (k, found[k], expected[k]) for k in expected if found[k] != expected[k]]


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) == 4 and arguments[2] == "--last":
        sys.exit(main(arguments[0], arguments[1], arguments[3]))
    if len(arguments) != 2:
        sys.exit(__doc__)
    sys.exit(main(*arguments))
