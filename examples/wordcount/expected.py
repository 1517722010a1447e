#!/usr/bin/env python3
"""expected.py [LINES.jsonl]: how often each word stands in the text, computed without Millstream."""
import json
import os
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "expected"))
import rows


def words(path):
    with open(path) as file:
        for line in file:
            yield from json.loads(line)["line"].split()


if __name__ == "__main__":
    text = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "data", "departures.jsonl")
    rows.write({"word": word, "count": count} for word, count in Counter(words(text)).items())
