"""Rows: what a function reads and makes, as ordinary classes with annotated fields."""

from __future__ import annotations

import dataclasses
import functools
import typing
from operator import attrgetter
from typing import Any, Callable, Generic, Iterator, TypeVar

from . import _columns
from ._boundary import types
from .values import ColumnSpec, column_type, names

T = TypeVar("T")


class DeclarationError(TypeError):
    """A function or row is declared in a way that makes no manifest."""


class Schema:
    """The columns of an annotation: of a dataclass one a field, of a plain type one named `value`, of None none."""

    def __init__(self, annotation: Any, single_name: str = "value") -> None:
        self.annotation = annotation
        self.columns: list[ColumnSpec] = []
        self._fields: list[str] = []
        self._make: Callable[..., Any]
        single = column_type(annotation)
        if annotation is None or annotation is type(None):
            self._make, self._get = (lambda: None), None
        elif single is not None:
            self.columns = [ColumnSpec(single_name, *single)]
            self._make, self._get = (lambda value: value), "whole"
        elif typing.get_origin(annotation) is tuple:
            self._of_tuple()
        elif dataclasses.is_dataclass(annotation):
            self._of_dataclass()
        else:
            shown = getattr(annotation, "__name__", annotation)
            raise DeclarationError(f"`{shown}` is no row: expected a dataclass or one of {names()}")

    def _of_tuple(self) -> None:
        for at, item in enumerate(typing.get_args(self.annotation), 1):
            self.columns.append(_column(f"key_{at}", item, "tuple"))
        self._make, self._get = (lambda *values: values), "items"

    def _of_dataclass(self) -> None:
        hints = typing.get_type_hints(self.annotation, include_extras=True)
        for each in dataclasses.fields(self.annotation):
            column = each.metadata.get("column", each.name)
            self.columns.append(_column(column, hints[each.name], self.annotation.__name__))
            self._fields.append(each.name)
        self._make, self._get = self.annotation, "fields"

    def read_columns(self, batch: Any) -> list[list[Any]]:
        """The values of each column of a batch."""
        if len(batch.columns) < len(self.columns):
            raise _columns.MismatchError(
                f"expected {len(self.columns)} columns, found {len(batch.columns)}"
            )
        pairs = zip(batch.columns, self.columns)
        return [_columns.decode(column, spec, batch.rows) for column, spec in pairs]

    def read(self, batch: Any) -> list[Any]:
        """The rows of a batch."""
        if not self.columns:
            return [self._make() for _ in range(batch.rows)]
        columns = self.read_columns(batch)
        if self._get == "whole":
            return columns[0]
        if self._get == "items":
            return list(zip(*columns))
        return list(map(self._make, *columns))

    def read_present(self, batch: Any, present: list[bool]) -> list[Any]:
        """As `read`, and None where nothing is present: such cells mean nothing and make no row."""
        if all(present):
            return self.read(batch)
        if not any(present):
            return [None] * batch.rows
        columns = self.read_columns(batch)
        if not columns:
            return [self._make() if there else None for there in present]
        rows = zip(*columns)
        return [self._make(*row) if there else None for row, there in zip(rows, present)]

    def write_columns(self, values: list[list[Any]]) -> list[Any]:
        """Columns of the values of each."""
        return [_columns.encode(column, spec) for column, spec in zip(values, self.columns)]

    def write(self, rows: list[Any]) -> list[Any]:
        """Columns of rows."""
        if not self.columns:
            return []
        if self._get == "whole":
            return self.write_columns([rows])
        if self._get == "items":
            return self.write_columns([list(column) for column in zip(*rows)] if rows else [[] for _ in self.columns])
        try:
            return self.write_columns([list(map(attrgetter(name), rows)) for name in self._fields])
        except AttributeError as error:
            raise _columns.MismatchError(f"expected rows of {self.annotation.__name__}: {error}") from None

    def batch(self, rows: list[Any]) -> Any:
        """A batch of rows."""
        return types.Batch(rows=len(rows), columns=self.write(rows))

    def batch_of_present(self, rows: list[Any]) -> Any:
        """Cells of rows, of which those that are None are absent."""
        present = [row is not None for row in rows]
        if all(present):
            return types.Cells(present=_columns.pack_bits(present), values=self.batch(rows))
        filler = next((row for row in rows if row is not None), None)
        if filler is None:
            filler_columns = [[_ZERO[spec.type.layout, spec.type.name == "utf8"]] * len(rows) for spec in self.columns]
            plain = [dataclasses.replace(s, type=dataclasses.replace(s.type, store=None)) for s in self.columns]
            columns = [_columns.encode(v, s) for v, s in zip(filler_columns, plain)]
            return types.Cells(present=_columns.pack_bits(present), values=types.Batch(len(rows), columns))
        filled = [filler if row is None else row for row in rows]
        return types.Cells(present=_columns.pack_bits(present), values=self.batch(filled))

    def describe(self) -> list[dict[str, Any]]:
        """As the manifest has it."""
        return [column.describe() for column in self.columns]


_ZERO: dict[tuple[str, bool], Any] = {
    ("bits", False): False,
    ("int32", False): 0,
    ("int64", False): 0,
    ("float32", False): 0.0,
    ("float64", False): 0.0,
    ("var", True): "",
    ("var", False): b"",
}


def _column(name: str, annotation: Any, owner: str) -> ColumnSpec:
    kind = column_type(annotation)
    if kind is None:
        shown = getattr(annotation, "__name__", annotation)
        raise DeclarationError(f"field `{name}` of `{owner}`: expected one of {names()}, found `{shown}`")
    return ColumnSpec(name, *kind)


@functools.lru_cache(maxsize=None)
def schema(annotation: Any) -> Schema:
    """The schema of an annotation."""
    return Schema(annotation)


@functools.lru_cache(maxsize=None)
def key_schema(annotation: Any) -> Schema:
    """The schema of a key, whose only column is called so if it has no name of its own."""
    return Schema(annotation, "key")


class Columns(Generic[T]):
    """Rows as columns, for functions that would rather not loop over rows: one list a column, by the name of the row's
    field, with None where it is null.

    A map function from `Columns[Row]` to `Columns[Result]` is called once a batch. `picked` says of each output row which
    input row it comes from; without it there is one for each input row, in order.
    """

    def __init__(self, rows: int | None = None, picked: list[int] | None = None, **columns: list[Any]) -> None:
        self.__dict__.update(columns)
        lengths = {len(column) for column in columns.values()}
        if rows is None:
            rows = len(picked) if picked is not None else max(lengths, default=0)
        if lengths - {rows}:
            raise _columns.MismatchError(f"columns of {sorted(lengths)} rows, expected {rows} in each")
        self.rows = rows
        self.picked = picked

    def __getattr__(self, name: str) -> list[Any]:
        raise AttributeError(f"no column `{name}`")

    def __len__(self) -> int:
        return self.rows


def read_columns(of: Schema, batch: Any) -> Columns[Any]:
    """A batch as columns by field name."""
    return Columns(batch.rows, None, **dict(zip(field_names(of), of.read_columns(batch))))


def write_columns(of: Schema, columns: Columns[Any]) -> list[Any]:
    """The columns that a function made, in the manifest's order."""
    missing = [name for name in field_names(of) if name not in columns.__dict__]
    if missing:
        raise _columns.MismatchError(f"the returned Columns lack `{missing[0]}`")
    return of.write_columns([columns.__dict__[name] for name in field_names(of)])


def field_names(of: Schema) -> list[str]:
    """The names of the fields behind a schema's columns."""
    return of._fields or [column.name for column in of.columns]


def snake_case(name: str) -> str:
    """`DelayStats` as `delay_stats`."""
    parts: list[str] = []
    for at, letter in enumerate(name):
        before = name[at - 1] if at else ""
        after = name[at + 1] if at + 1 < len(name) else ""
        if letter.isupper() and at and (not before.isupper() or after.islower()) and before != "_":
            parts.append("_")
        parts.append(letter.lower())
    return "".join(parts)


def iterate(value: Any) -> Iterator[Any]:
    """For flat maps that return None instead of an empty list."""
    return iter(()) if value is None else iter(value)
