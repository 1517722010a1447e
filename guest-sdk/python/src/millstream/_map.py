"""Map functions: rows in, rows out."""

from __future__ import annotations

from typing import Any

from ._boundary import types
from ._columns import MismatchError
from ._collector import Rejections, outcome
from ._declaration import Declaration, Opened
from ._signature import Signature, check_returns, check_roles
from .context import Reject
from .rows import DeclarationError, iterate, read_columns, schema, write_columns
from .values import NO_TIME


class Map(Declaration):
    """A map function: a function of a row, or a class with a method `map`."""

    kind = "map"

    def methods(self) -> dict[str, Signature]:
        return {"map": self.signature("map")}

    def check(self) -> None:
        method = self.methods()["map"]
        check_returns(method, "`-> Row`, `-> Row | None`, `-> list[Row]`, `-> Iterator[Row]` or `-> bool`")
        super().check()
        if not method.arguments or method.arguments[0].role not in ("plain", "columns"):
            raise DeclarationError(f"`{method.name}`: expected a row as the first argument")
        check_roles(method, ("plain", "columns", "context", "event-time", "parameters", "collector"))
        if method.has("columns") != (method.returns.how == "columns"):
            raise DeclarationError(f"`{method.name}`: Columns go in and come out, or neither")

    def inputs(self) -> list[dict[str, Any]]:
        method = self.methods()["map"]
        columns = schema(method.arguments[0].annotation).describe()
        return [{"name": "input", "distribution": "any", "columns": columns, "times": method.has("event-time")}]

    def open(self) -> "OpenedMap":
        return OpenedMap(self)


class OpenedMap(Opened):
    """An open map function."""

    def __init__(self, declaration: Map) -> None:
        super().__init__(declaration)
        self.method = declaration.methods()["map"]
        self.row = schema(self.method.arguments[0].annotation)
        self.extra, self.time_at = self.arguments(self.method, 1)

    def apply(self, batch: Any, times: list[int] | None) -> Any:
        """Handles a batch."""
        self.begin()
        if self.method.returns.how == "columns":
            return self._columns(batch)
        rejections = Rejections()
        self._rows(self.row.read(batch), times, rejections)
        self.flush()
        return outcome(self.collectors, batch.rows, rejections)

    def _columns(self, batch: Any) -> Any:
        of = self.declaration.ports[0].schema
        made = self.function("map")(read_columns(self.row, batch), *self.extra)
        origin = types.Origin_Each() if made.picked is None else types.Origin_Picked(made.picked)
        columns = write_columns(of, made)
        self.flush()
        outputs = [types.Output(port=0, rows=made.rows, origin=origin, columns=columns)] if made.rows else []
        return types.Outcome(outputs=outputs, rejected=[])

    def _rows(self, rows: list[Any], times: list[int] | None, rejections: Rejections) -> None:
        function, extra, time_at = self.function("map"), self.extra, self.time_at
        how, main = self.method.returns.how, self.collectors[0]
        for at, row in enumerate(rows):
            if time_at is not None and times is not None:
                extra[time_at] = None if times[at] == NO_TIME else times[at]
            for collector in self.collectors:
                collector._row = at
            try:
                made = function(row, *extra)
                if how == "many":
                    made = list(iterate(made))
            except Reject as reject:
                rejections.add(at, reject)
                continue
            take(how, made, main)


def take(how: str, made: Any, main: Any) -> None:
    """Emits what a function returned."""
    match how:
        case "one":
            main.emit(made)
        case "optional":
            if made is not None:
                main.emit(made)
        case "many":
            for row in made:
                main.emit(row)
        case "keep":
            if made:
                main.emit(None)
        case _:
            if made is not None:
                raise MismatchError(f"a function returned {made!r}, and its annotation says that it returns nothing: `-> None`")
