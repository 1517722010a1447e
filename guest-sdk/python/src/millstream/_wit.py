"""The records of the interface, as `componentize-py` makes them of the WIT package, for functions that run natively.

Within a component the generated ones are used; both have the same names and fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass
class VarValues:
    """Offsets, one more than there are rows, into one run of bytes."""

    offsets: list[int]
    bytes: bytes


@dataclass
class Values_Bits:
    value: bytes


@dataclass
class Values_Int32:
    value: list[int]


@dataclass
class Values_Int64:
    value: list[int]


@dataclass
class Values_Float32:
    value: list[float]


@dataclass
class Values_Float64:
    value: list[float]


@dataclass
class Values_Var:
    value: VarValues


@dataclass
class Column:
    """Validity is None where every row has a value."""

    validity: bytes | None
    values: Any
    children: list[int] = field(default_factory=list)


@dataclass
class Batch:
    rows: int
    columns: list[Column]


@dataclass
class Window:
    start: int
    end: int


class Clock(Enum):
    EVENT = 0
    PROCESSING = 1


@dataclass
class Cells:
    present: bytes
    values: Batch


@dataclass
class Runs:
    offsets: list[int]
    items: Batch


@dataclass
class Entries:
    offsets: list[int]
    map_keys: VarValues
    values: Batch


@dataclass
class Origin_Each:
    pass


@dataclass
class Origin_Picked:
    value: list[int]


@dataclass
class Origin_Made:
    value: list[int]


@dataclass
class Output:
    port: int
    rows: int
    origin: Any
    columns: list[Column]


@dataclass
class Rejected:
    row: int
    reason: str
    retryable: bool


@dataclass
class Outcome:
    outputs: list[Output]
    rejected: list[Rejected]


@dataclass
class KeyedBatch:
    port: int
    rows: Batch
    times: list[int] | None
    keys: Batch
    key_of_row: list[int]
    watermark: int


@dataclass
class Fired:
    clock: Clock
    keys: Batch
    times: list[int]
    watermark: int


@dataclass
class Accumulated:
    accumulators: Batch
    rejected: list[Rejected]


class Level(Enum):
    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
