"""The flights that an expected.py reads: a path given on the command line, else the whole year where
MILLSTREAM_FLIGHTS or MILLSTREAM_DATA names it, else January, which is in the repository."""
import csv
import gzip
import os
import sys
from collections import namedtuple

from times import milliseconds

HOUR = 3_600_000
DAY = 24 * HOUR

# `time` is time_hour in milliseconds since the epoch; `tailnum` and `dep_delay` are None where the file has NA.
Leg = namedtuple("Leg", "time sched_dep_time carrier flight origin tailnum dep_delay")


def path():
    if len(sys.argv) > 1:
        return sys.argv[1]
    if "MILLSTREAM_FLIGHTS" in os.environ:
        return os.environ["MILLSTREAM_FLIGHTS"]
    if "MILLSTREAM_DATA" in os.environ:
        return os.path.join(os.environ["MILLSTREAM_DATA"], "flights.csv.gz")
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "flights-2013-01.csv.gz")


def legs():
    with gzip.open(path(), "rt", newline="") as file:
        for row in csv.DictReader(file):
            yield Leg(
                milliseconds(row["time_hour"]),
                int(row["sched_dep_time"]),
                row["carrier"],
                int(row["flight"]),
                row["origin"],
                None if row["tailnum"] == "NA" else row["tailnum"],
                None if row["dep_delay"] == "NA" else float(row["dep_delay"]),
            )
