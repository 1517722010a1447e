"""Window functions: all rows of a window at once."""

from __future__ import annotations

import typing
from functools import cached_property
from typing import Any

from ._collector import outcome
from ._declaration import Declaration, Opened
from ._map import take
from ._signature import Signature
from .context import Window
from .rows import DeclarationError, Schema, iterate, key_schema, schema


class WindowFunction(Declaration):
    """A function of key, window and rows, or a class with a method `apply`."""

    kind = "window"

    def methods(self) -> dict[str, Signature]:
        return {"apply": self.signature("apply")}

    def check(self) -> None:
        super().check()
        of = self.methods()["apply"]
        roles = [argument.role for argument in of.arguments[:3]]
        if roles != ["plain", "window", "plain"] or typing.get_origin(of.arguments[2].annotation) is not list:
            raise DeclarationError(f"`{of.name}`: expected a key, a Window and a list of rows as the first arguments")

    @cached_property
    def key(self) -> Schema:
        return key_schema(self.methods()["apply"].arguments[0].annotation)

    @cached_property
    def row(self) -> Schema:
        """What its rows are."""
        self.check()
        return schema(typing.get_args(self.methods()["apply"].arguments[2].annotation)[0])

    def inputs(self) -> list[dict[str, Any]]:
        columns = self.row.describe()
        return [{"name": "input", "distribution": "keyed", "columns": columns, "times": False}]

    def open(self) -> "OpenedWindow":
        return OpenedWindow(self)


class OpenedWindow(Opened):
    """An open window function."""

    def __init__(self, declaration: WindowFunction) -> None:
        super().__init__(declaration)
        self.row = declaration.row
        self.method = declaration.methods()["apply"]
        self.extra, _ = self.arguments(self.method, 3)

    def apply(self, rows: Any, offsets: list[int], keys: Any, key_of_window: list[int], windows: list[Any]) -> Any:
        """Handles fired windows."""
        self.begin()
        read, key_rows = self.row.read(rows), self.declaration.key.read(keys)
        function, how = self.function("apply"), self.method.returns.how
        for at, window in enumerate(windows):
            for collector in self.collectors:
                collector._row = at
            contents = read[offsets[at] : offsets[at + 1]]
            made = function(key_rows[key_of_window[at]], Window(window.start, window.end), contents, *self.extra)
            take(how, list(iterate(made)) if how == "many" else made, self.collectors[0])
        self.flush()
        return outcome(self.collectors, len(windows))
