"""The random numbers and the checksum of the bench, as tests/bench/flink/README.md defines them.

Numbers are 64 bits wide and wrap. A record is a function of its index alone.
"""

MASK = (1 << 64) - 1


def mix(x):
    """The splitmix64 finaliser of x plus the golden gamma."""
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def below(r, k):
    """Uniform in [0, k), from the upper half of r."""
    return (r >> 32) * k >> 32


FNV_START = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3


def fnv1a64(data, start=FNV_START):
    h = start
    for byte in data:
        h = (h ^ byte) * FNV_PRIME & MASK
    return h


class Checksum:
    """Count and wrapping sum of mix(fnv1a64(text)) over texts in any order."""

    def __init__(self):
        self.rows = 0
        self.sum = 0

    def add(self, text, times=1):
        self.add_hash(fnv1a64(text.encode() if isinstance(text, str) else text), times)

    def add_hash(self, h, times=1):
        self.rows += times
        self.sum = (self.sum + times * mix(h)) & MASK

    def result(self):
        return {"rows": self.rows, "checksum": "%x" % self.sum}


def checksum(texts):
    total = Checksum()
    for text in texts:
        total.add(text)
    return total.result()
