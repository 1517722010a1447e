"""The types of columns, and what stands for them in annotations."""

from __future__ import annotations

import types as python_types
import typing
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, Any, Callable, NewType, Optional

Int32 = Annotated[int, "int32"]
"""A 32-bit integer; `int` alone is one of 64 bits."""

Float32 = Annotated[float, "float32"]
"""A single-precision number; `float` alone is double precision."""

Timestamp = NewType("Timestamp", int)
"""Milliseconds since the epoch, UTC. `datetime` in its place is more comfortable, slower, and ends at the year 9999."""

Date = NewType("Date", int)
"""Days since the epoch. `datetime.date` in its place is more comfortable, slower, and ends at the year 9999."""

EventTime = Annotated[Optional[int], "event-time"]
"""The event time of a row in milliseconds since the epoch, or None. A function that takes one is sent them."""

NO_TIME = -(2**63)


@dataclass(frozen=True)
class ColumnType:
    """How values of an annotation cross the boundary."""

    name: str
    layout: str
    expected: str
    load: Callable[[Any], Any] | None = None
    store: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class ColumnSpec:
    """A column of a row: its name, its type, and whether it may be null."""

    name: str
    type: ColumnType
    nullable: bool

    def describe(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {"name": self.name, "type": self.type.name, "nullable": self.nullable}


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST_DAY = date(1970, 1, 1).toordinal()
MILLISECOND = timedelta(milliseconds=1)


def _to_datetime(millis: int) -> datetime:
    return EPOCH + timedelta(milliseconds=millis)


def _from_datetime(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise TypeError("a datetime without a time zone: use datetime.now(timezone.utc) and the like")
    return (moment - EPOCH) // MILLISECOND


def _to_date(days: int) -> date:
    return date.fromordinal(FIRST_DAY + days)


def _from_date(day: date) -> int:
    return day.toordinal() - FIRST_DAY


_BOOLEAN = ColumnType("boolean", "bits", "bool")
_INT32 = ColumnType("int32", "int32", "int of 32 bits")
_INT64 = ColumnType("int64", "int64", "int of 64 bits")
_FLOAT32 = ColumnType("float32", "float32", "float")
_FLOAT64 = ColumnType("float64", "float64", "float")
_UTF8 = ColumnType("utf8", "var", "str")
_BINARY = ColumnType("binary", "var", "bytes")

_TYPES: list[tuple[Any, ColumnType]] = [
    (bool, _BOOLEAN),
    (Int32, _INT32),
    (int, _INT64),
    (Float32, _FLOAT32),
    (float, _FLOAT64),
    (Timestamp, ColumnType("timestamp", "int64", "int of milliseconds")),
    (datetime, ColumnType("timestamp", "int64", "datetime with a time zone", _to_datetime, _from_datetime)),
    (Date, ColumnType("date", "int32", "int of days")),
    (date, ColumnType("date", "int32", "date", _to_date, _from_date)),
    (str, _UTF8),
    (bytes, _BINARY),
]


def column_type(annotation: Any) -> tuple[ColumnType, bool] | None:
    """The column type of an annotation and whether it may be null; None if it stands for no column."""
    inner, nullable = strip_optional(annotation)
    for known, kind in _TYPES:
        if known == inner:
            return kind, nullable
    return None


def strip_optional(annotation: Any) -> tuple[Any, bool]:
    """`T | None` as `T` and whether None was in it."""
    if typing.get_origin(annotation) not in (typing.Union, python_types.UnionType):
        return annotation, False
    inner = [each for each in typing.get_args(annotation) if each is not type(None)]
    if len(inner) != 1:
        return annotation, False
    return inner[0], True


def names() -> str:
    """The annotations that stand for a column, for error texts."""
    special = {Int32: "Int32", Float32: "Float32"}
    return ", ".join(special.get(known) or known.__name__ for known, _ in _TYPES)
