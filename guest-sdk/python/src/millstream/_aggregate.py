"""Aggregate functions: the rows of a window are taken into an accumulator as they come."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from . import _columns
from ._boundary import Accumulated
from ._collector import Rejections, outcome
from ._declaration import Declaration, Opened, versions
from ._map import take
from ._signature import Signature
from .context import Reject, Window
from .rows import DeclarationError, Schema, iterate, key_schema, schema
from .values import NO_TIME


class Aggregate(Declaration):
    """A class with `add`, `finish`, perhaps `merge`, and perhaps `create`."""

    kind = "aggregate"

    def __init__(self, target: Any, name: str | None, carry: str | None) -> None:
        super().__init__(target, name, carry)
        if not self.is_class:
            raise DeclarationError(f"`{self.name}`: an aggregate function is a class with methods `add` and `finish`")

    @property
    def merges(self) -> bool:
        """Whether it can merge two accumulators."""
        return callable(getattr(self.target, "merge", None))

    @cached_property
    def add(self) -> Signature:
        """Its method `add`."""
        add = self.signature("add")
        if len(add.arguments) < 2 or add.arguments[0].role != "plain":
            raise DeclarationError(f"`{add.name}`: expected an accumulator and a row as the first arguments")
        return add

    def methods(self) -> dict[str, Signature]:
        # What `add` returns is an accumulator and no output.
        return {"finish": self.signature("finish")}

    @cached_property
    def accumulator(self) -> Schema:
        """What is kept for each group."""
        return schema(self.add.arguments[0].annotation)

    @cached_property
    def key(self) -> Schema:
        return key_schema(self._key_annotation())

    def _key_annotation(self) -> Any:
        plain = [argument for argument in self.signature("finish").arguments[1:] if argument.role == "plain"]
        return plain[0].annotation if plain else None

    def inputs(self) -> list[dict[str, Any]]:
        columns = schema(self.add.arguments[1].annotation).describe()
        times = self.add.has("event-time")
        return [{"name": "input", "distribution": "keyed", "columns": columns, "times": times}]

    def describe(self) -> dict[str, Any]:
        value = self.add.arguments[0].annotation
        accumulator: dict[str, Any] = {"columns": self.accumulator.describe(), **versions(value)}
        if not self.merges:
            accumulator["merges"] = False
        return {**super().describe(), "accumulator": accumulator}

    def open(self) -> "OpenedAggregate":
        return OpenedAggregate(self)


class OpenedAggregate(Opened):
    """An open aggregate function."""

    def __init__(self, declaration: Aggregate) -> None:
        super().__init__(declaration)
        self.aggregate = declaration
        self.row = schema(declaration.add.arguments[1].annotation)
        self.extra, self.time_at = self.arguments(declaration.add, 2)
        self.finishing = declaration.signature("finish")

    def _create(self) -> Any:
        if self.aggregate.is_class and callable(getattr(self.instance, "create", None)):
            return self.function("create")()
        return self.aggregate.accumulator.annotation()

    def accumulate(self, rows: Any, times: list[int] | None, group_of_row: list[int], cells: Any) -> Any:
        """Adds rows to their groups."""
        self.begin()
        groups = cells.values.rows
        present = _columns.unpack_bits(cells.present, groups)
        accumulators = self.aggregate.accumulator.read_present(cells.values, present)
        accumulators = [self._create() if each is None else each for each in accumulators]
        add, extra, time_at = self.function("add"), self.extra, self.time_at
        rejections = Rejections()
        for at, (row, group) in enumerate(zip(self.row.read(rows), group_of_row)):
            if time_at is not None and times is not None:
                extra[time_at] = None if times[at] == NO_TIME else times[at]
            try:
                added = add(accumulators[group], row, *extra)
            except Reject as reject:
                rejections.add(at, reject)
                continue
            if added is not None:
                accumulators[group] = added
        self.flush()
        return Accumulated(accumulators=self.aggregate.accumulator.batch(accumulators), rejected=rejections.rejected)

    def merge(self, into: Any, other: Any) -> Any:
        """Merges accumulators pairwise."""
        self.begin()
        of = self.aggregate.accumulator
        if not self.aggregate.merges:
            raise _columns.MismatchError(f"`{self.aggregate.name}` has no method `merge`")
        merge = self.function("merge")
        merged = []
        for one, two in zip(of.read(into), of.read(other)):
            both = merge(one, two)
            merged.append(one if both is None else both)
        self.flush()
        return of.batch(merged)

    def finish(self, accumulators: Any, keys: Any, key_of_group: list[int], windows: list[Any]) -> Any:
        """Makes output of accumulators, which stay."""
        self.begin()
        key_rows = self.aggregate.key.read(keys)
        arguments, how = self.finishing.arguments[1:], self.finishing.returns.how
        fixed = iter(self.arguments(_without_places(self.finishing), 1)[0])
        values = [next(fixed) if each.role not in ("plain", "window") else None for each in arguments]
        for at, accumulator in enumerate(self.aggregate.accumulator.read(accumulators)):
            for place, argument in enumerate(arguments):
                if argument.role == "plain":
                    values[place] = key_rows[key_of_group[at]]
                elif argument.role == "window":
                    values[place] = Window(windows[at].start, windows[at].end)
            for collector in self.collectors:
                collector._row = at
            made = self.function("finish")(accumulator, *values)
            take(how, list(iterate(made)) if how == "many" else made, self.collectors[0])
        self.flush()
        return outcome(self.collectors, len(windows))


def _without_places(of: Signature) -> Signature:
    """The signature without key and window, which differ from group to group."""
    kept = [each for at, each in enumerate(of.arguments) if not at or each.role not in ("plain", "window")]
    return Signature(of.name, kept, of.returns)
