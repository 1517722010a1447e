#!/usr/bin/env python3
"""expected.py [FLIGHTS.csv.gz] [LIMIT]: when a plane got busy, computed without Millstream.

A leg counts from its scheduled hour for 24 hours: at `time` the legs of (time - 24 h, time] count. A plane
gets busy with the leg that makes more than LIMIT (5) count, and can do so again once no more than LIMIT do.
"""
import os
import sys
from collections import defaultdict, deque

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "expected"))
import flights
import rows
from times import timestamp

LIMIT = int(sys.argv[2]) if len(sys.argv) > 2 else 5


def busy_planes(legs):
    planes = defaultdict(list)
    for leg in legs:
        if leg.tailnum is not None:
            planes[leg.tailnum].append(leg)
    for tailnum, own in planes.items():
        own.sort(key=lambda leg: (leg.time, leg.sched_dep_time, leg.carrier, leg.flight, leg.origin))
        for time, departures in alerts(own):
            yield {"tailnum": tailnum, "time": timestamp(time), "departures": departures}


def alerts(ordered):
    """(time, legs that count) of each leg with which its plane gets busy."""
    recent = deque()
    busy = False
    for leg in ordered:
        while recent and recent[0] <= leg.time - flights.DAY:
            recent.popleft()
        # between two legs the number only falls, so what it fell to is seen here
        busy = busy and len(recent) > LIMIT
        recent.append(leg.time)
        if len(recent) > LIMIT and not busy:
            busy = True
            yield leg.time, len(recent)


if __name__ == "__main__":
    rows.write(busy_planes(flights.legs()))
