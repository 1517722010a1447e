#!/usr/bin/env python3
"""departures.py FOLDER: the text of the word count, one JSON line for each flight of 1 January 2013.

FOLDER holds flights.csv.gz, airports.csv.gz and airlines.csv.gz of nycflights13. Words are lower case
letters and digits with one space between them, so that splitting at spaces is all a word count needs.
"""
import csv
import gzip
import json
import os
import re
import sys


def rows(folder, name):
    with gzip.open(os.path.join(folder, name + ".csv.gz"), "rt", newline="") as file:
        yield from csv.DictReader(file)


def words(text):
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def when(minutes):
    """How a departure compares with its schedule, in words; `NA` is a cancelled flight."""
    if minutes == "NA":
        return "cancelled today"
    delay = int(minutes)
    if delay == 0:
        return "on time"
    return "%d %s %s" % (abs(delay), "minute" if abs(delay) == 1 else "minutes", "late" if delay > 0 else "early")


def main(folder):
    airlines = {a["carrier"]: a["name"] for a in rows(folder, "airlines")}
    airports = {a["faa"]: a["name"] for a in rows(folder, "airports")}
    for flight in rows(folder, "flights"):
        if (flight["month"], flight["day"]) != ("1", "1"):
            break
        line = "%s flight %s from %s to %s is %s" % (
            airlines[flight["carrier"]],
            flight["flight"],
            airports[flight["origin"]],
            airports.get(flight["dest"], flight["dest"]),
            when(flight["dep_delay"]),
        )
        print(json.dumps({"line": words(line)}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
