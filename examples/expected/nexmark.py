"""The auction site of the NEXMark examples: the bids of the generator and the queries over them.

Of 50 events in a row the first is a person, three are auctions, 46 are bids; no query here reads the others.
A query is a generator of rows, each a dictionary whose order of keys is that of the output's columns.
`text` makes of a row what the bench's checksum is taken over.
"""
import json
import math
import sys
from collections import Counter, namedtuple

import records
import rows
from records import below, mix
from times import milliseconds, timestamp

RECORDS = 1_000_000
START = 1_700_000_000_000
EVENTS_PER_SECOND = 100_000
FIRST_ID = 1000
CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
PRICES = [math.floor(100 * 10 ** (6 * k / 4096)) for k in range(4096)]

Bid = namedtuple("Bid", "auction bidder price channel url ts extra")


def strings(seed, length):
    """A pool of 256 strings of lower case letters."""
    return [letters(mix(seed * 256 + i), length) for i in range(256)]


def letters(r, length):
    text = ""
    for _ in range(length):
        r = mix(r)
        text += chr(ord("a") + below(r, 26))
    return text


URLS = strings(9, 30)
EXTRAS = strings(10, 30)


def bids(count=RECORDS):
    """The bids among the events 0 to count - 1."""
    for i in range(count):
        if i % 50 >= 4:
            yield bid(i)


def bid(i):
    epoch = i // 50
    r = mix(i)
    return Bid(
        FIRST_ID + auction(epoch, r),
        FIRST_ID + bidder(epoch, r),
        PRICES[r >> 16 & 4095],
        CHANNELS[r >> 12 & 3],
        URLS[r & 255],
        START + i * 1000 // EVENTS_PER_SECOND,
        EXTRAS[r & 255],
    )


def auction(epoch, r):
    """Every second bid is for the hot auction, the others for one of the last 100."""
    last = 3 * epoch + 2
    if r >> 8 & 1 == 0:
        return last // 100 * 100
    recent = min(last + 1, 100)
    return last - recent + 1 + below(mix(r), recent)


def bidder(epoch, r):
    """Three of four bids are the hot person's, the others of one of the last 1000."""
    if r >> 9 & 3 != 0:
        return epoch // 100 * 100 + 1
    recent = min(epoch + 1, 1000)
    return epoch - recent + 1 + below(mix(r) << 32 & records.MASK, recent)


def q0(all_bids):
    """Every bid as it is."""
    for b in all_bids:
        yield b._asdict()


def q1(all_bids):
    """Every bid with its price times 0.908."""
    for b in all_bids:
        yield b._replace(price=b.price * 908 // 1000)._asdict()


def q2(all_bids):
    """Auction and price of the bids for auctions whose number 123 divides."""
    for b in all_bids:
        if b.auction % 123 == 0:
            yield {"auction": b.auction, "price": b.price}


def q5(all_bids):
    """The auction with most bids of each 10 s, every 2 s; of equals the one with the smaller number."""
    size, slide = 10_000, 2_000
    windows = {}
    for b in all_bids:
        first_end = b.ts - b.ts % slide + slide
        for end in range(first_end, first_end + size, slide):
            windows.setdefault(end, Counter())[b.auction] += 1
    for end, counts in windows.items():
        count, negated = max((count, -number) for number, count in counts.items())
        yield {"window_end": timestamp(end), "auction": -negated, "count": count}


def q7(all_bids):
    """The highest bid of each 10 s; of equals the earlier one, then the one of the smaller bidder."""
    windows = {}
    for b in all_bids:
        windows.setdefault(b.ts // 10_000, []).append(b)
    for window in windows.values():
        b = min(window, key=lambda b: (-b.price, b.ts, b.bidder))
        yield {"auction": b.auction, "price": b.price, "bidder": b.bidder, "ts": timestamp(b.ts)}


QUERIES = {"q0": q0, "q1": q1, "q2": q2, "q5": q5, "q7": q7}


def text(row):
    """The row's values with commas: a bid's alone, any other row's within parentheses. Times are milliseconds."""
    times = {"ts", "window_end"}
    values = ",".join(str(milliseconds(v) if k in times and isinstance(v, str) else v) for k, v in row.items())
    return values if "channel" in row else "(%s)" % values


def main(query):
    """What nexmark-QUERY/expected.py does: rows, or with --check their number and checksum."""
    result = QUERIES[query](bids())
    if "--check" in sys.argv[1:]:
        print(json.dumps(records.checksum(map(text, result))))
    else:
        rows.write(result)
