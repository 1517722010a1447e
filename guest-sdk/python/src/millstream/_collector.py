"""Collectors, and what a call returns."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._boundary import types
from .rows import Schema

T = TypeVar("T")


class Collector(Generic[T]):
    """Takes rows of one output. A function gets one for each that it names as an argument; the first is the main output,
    others are side outputs by the names of the arguments."""

    def __init__(self, port: int, of: Schema) -> None:
        self._port = port
        self._schema = of
        self._row = 0
        self._runs: list[tuple[bool, list[int], list[Any]]] = []
        self._begin()

    def _begin(self) -> None:
        self._runs.clear()
        self._made = False
        self._origins: list[int] = []
        self._rows: list[Any] = []

    def emit(self, row: T) -> None:
        """Emits a row. It has the event time of the row, timer or window being handled."""
        if self._made:
            self._turn()
        self._origins.append(self._row)
        self._rows.append(row)

    def emit_at(self, time: int, row: T) -> None:
        """Emits a row with an event time of its own. Only for an output that replaces, not one that carries columns."""
        if not self._made:
            self._turn()
        self._origins.append(time)
        self._rows.append(row)

    def _turn(self) -> None:
        self._close()
        self._made = not self._made
        self._origins, self._rows = [], []

    def _close(self) -> None:
        if self._rows:
            self._runs.append((self._made, self._origins, self._rows))

    def _finish(self, call_rows: int) -> list[Any]:
        self._close()
        outputs = []
        for made, origins, rows in self._runs:
            if made:
                origin: Any = types.Origin_Made(origins)
            elif len(origins) == call_rows and origins == list(range(call_rows)):
                origin = types.Origin_Each()
            else:
                origin = types.Origin_Picked(origins)
            columns = self._schema.write(rows)
            outputs.append(types.Output(port=self._port, rows=len(rows), origin=origin, columns=columns))
        self._begin()
        return outputs


class Rejections:
    """The rows that a call refuses."""

    def __init__(self) -> None:
        self.rejected: list[Any] = []

    def add(self, row: int, reason: BaseException) -> None:
        """Refuses a row."""
        self.rejected.append(types.Rejected(row=row, reason=str(reason), retryable=False))


def outcome(collectors: list[Collector[Any]], rows: int, rejections: Rejections | None = None) -> Any:
    """What a call returns, of what its collectors gathered."""
    outputs = [output for collector in collectors for output in collector._finish(rows)]
    return types.Outcome(outputs=outputs, rejected=rejections.rejected if rejections else [])
