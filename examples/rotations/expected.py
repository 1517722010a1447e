#!/usr/bin/env python3
"""expected.py [FLIGHTS.csv.gz]: the rotations of each plane, computed without Millstream.

A leg joins the rotation before it when its scheduled hour is at most 12 hours after that rotation's last one:
sessions that touch are one. Legs of no known plane belong to no rotation.
"""
import os
import sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "expected"))
import flights
import rows
from times import timestamp

GAP = 12 * flights.HOUR
MINUTE = 60_000


def rotations(legs):
    planes = defaultdict(list)
    for leg in legs:
        if leg.tailnum is not None:
            planes[leg.tailnum].append(leg)
    for tailnum, own in planes.items():
        own.sort(key=lambda leg: leg.time)
        for session in sessions(own):
            yield rotation(tailnum, session)


def sessions(ordered):
    session = ordered[:1]
    for leg in ordered[1:]:
        if leg.time - session[-1].time > GAP:
            yield session
            session = []
        session.append(leg)
    yield session


def rotation(tailnum, session):
    times = [leg.time for leg in session]
    waits = [after - before for before, after in zip(times, times[1:])]
    return {
        "tailnum": tailnum,
        "first": timestamp(times[0]),
        "last": timestamp(times[-1]),
        "legs": len(session),
        "dep_delay": sum((leg.dep_delay for leg in session if leg.dep_delay is not None), 0.0),
        "longest_wait": max(waits, default=0) // MINUTE,
    }


if __name__ == "__main__":
    rows.write(rotations(flights.legs()))
