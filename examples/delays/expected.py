#!/usr/bin/env python3
"""expected.py [FLIGHTS.csv.gz]: the delays of each carrier and day, computed without Millstream."""
import os
import sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "expected"))
import flights
import rows
from times import timestamp


def delays(legs):
    """Groups by carrier and UTC day of the scheduled hour; flights that never left have no delay."""
    groups = defaultdict(list)
    for leg in legs:
        if leg.dep_delay is not None:
            groups[leg.carrier, leg.time - leg.time % flights.DAY].append(leg.dep_delay)
    for (carrier, day), group in groups.items():
        group.sort()
        yield {
            "carrier": carrier,
            "day": timestamp(day),
            "count": len(group),
            "mean": sum(group) / len(group),
            "maximum": group[-1],
            "p90": nearest_rank(group, 90),
        }


def nearest_rank(ordered, percent):
    """The smallest value that at least `percent` percent of the values do not exceed."""
    rank = (len(ordered) * percent + 99) // 100
    return ordered[rank - 1]


if __name__ == "__main__":
    rows.write(delays(flights.legs()))
