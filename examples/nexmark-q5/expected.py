#!/usr/bin/env python3
"""expected.py [--check]: the rows of q5 over the generator's first million events, computed without Millstream."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "expected"))
import nexmark

if __name__ == "__main__":
    nexmark.main("q5")
