"""Functions under plain `pytest` or `unittest`, with the host in memory.

    results = testing.map(hot).parameter("limit", 20).run([Reading(25.0)])
    assert results.rows == [Hot(77.0)]
"""

from __future__ import annotations

from typing import Any

from ._host import HOST

__all__ = ["HOST", "Results", "aggregate", "map", "process", "window"]


class Results:
    """What a function emitted and refused."""

    def __init__(self, declaration: Any) -> None:
        self._ports = declaration.ports
        self.rows: list[Any] = []
        self.origins: list[int | None] = []
        self.times: list[int | None] = []
        self.rejected: list[tuple[int, str]] = []
        self._sides: dict[str, list[Any]] = {port.name: [] for port in self._ports}

    def side(self, name: str) -> list[Any]:
        """The rows of a side output."""
        return self._sides[name]

    def _take(self, outcome: Any, rows: int = 0) -> "Results":
        from .._boundary import types

        for output in outcome.outputs:
            port = self._ports[output.port]
            batch = types.Batch(output.rows, output.columns)
            made = port.schema.read(batch)
            self._sides[port.name].extend(made)
            if output.port == 0:
                self.rows.extend(made)
                each = range(output.rows) if isinstance(output.origin, types.Origin_Each) else output.origin.value
                is_made = isinstance(output.origin, types.Origin_Made)
                self.origins.extend(None if is_made else at for at in each)
                self.times.extend(at if is_made else None for at in each)
        self.rejected.extend((each.row, each.reason) for each in outcome.rejected)
        return self


class _Test:
    """A function under test. Parameters are set before the first rows; state stays from call to call."""

    def __init__(self, target: Any) -> None:
        from ..decorators import declaration
        from ..rows import schema

        self.declaration: Any = declaration(target)
        self.declaration.describe()
        states = self.declaration.states
        HOST.reset({name: schema(arguments[-1]) for name, (_, arguments) in states.items()})
        self._opened: Any = None

    def parameter(self, name: str, value: Any) -> Any:
        """Sets a parameter, as a job file would."""
        HOST.parameters[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    @property
    def function(self) -> Any:
        """The open function."""
        if self._opened is None:
            self._opened = self.declaration.open()
        return self._opened

    def before_barrier(self) -> Results:
        """Calls the hook before a barrier."""
        return Results(self.declaration)._take(self.function.before_barrier())

    def end_of_input(self) -> Results:
        """Ends the input."""
        return Results(self.declaration)._take(self.function.end_of_input())


class _MapTest(_Test):
    def run(self, rows: list[Any], times: list[int] | None = None) -> Results:
        """Gives rows in one call, with event times if the function takes them."""
        batch = self.function.row.batch(rows)
        from ..values import NO_TIME

        times = times if times is not None else [NO_TIME] * len(rows)
        return Results(self.declaration)._take(self.function.apply(batch, times))


class _ProcessTest(_Test):
    def __init__(self, target: Any) -> None:
        from ..values import NO_TIME

        super().__init__(target)
        self._watermark = NO_TIME

    def rows(self, rows: list[tuple[Any, Any]], on: str | None = None, times: list[int] | None = None) -> Results:
        """Gives rows in one call, each with its key, to the first input or that of a name."""
        from .. import _wit as wit
        from ..rows import schema

        methods = list(self.declaration.inputs_by_method)
        port = methods.index(on) if on is not None else 0
        row = schema(self.declaration.signature(methods[port]).arguments[1].annotation)
        HOST.keys = list(dict.fromkeys(key for key, _ in rows))
        call = wit.KeyedBatch(
            port=port,
            rows=row.batch([each for _, each in rows]),
            times=times,
            keys=self.declaration.key.batch(HOST.keys),
            key_of_row=[HOST.keys.index(key) for key, _ in rows],
            watermark=self._watermark,
        )
        results = Results(self.declaration)._take(self.function.process(call))
        return self._fire(results, "event", self._watermark)

    def watermark(self, time: int) -> Results:
        """Moves the watermark on: due event timers fire, round by round."""
        self._watermark = max(self._watermark, time)
        return self._fire(Results(self.declaration), "event", time)

    def processing_time(self, time: int) -> Results:
        """Moves the host's clock on: due processing timers fire."""
        HOST.time = time
        return self._fire(Results(self.declaration), "processing", time)

    def end_of_input(self) -> Results:
        results = self.watermark(2**63 - 1)
        return results._take(self.function.end_of_input())

    def _fire(self, results: Results, clock: str, to: int) -> Results:
        from .. import _wit as wit

        while True:
            due = sorted(
                (timer for timer in HOST.timers_set if timer[0] == clock and timer[1] <= to),
                key=lambda timer: timer[1],
            )
            if not due:
                return results
            # At most one timer a key and call, its earliest.
            earliest = {key: time for _, time, key in reversed(due)}
            for key, time in earliest.items():
                HOST.timers_set.discard((clock, time, key))
            HOST.keys = list(dict.fromkeys(key for _, _, key in due))
            fired = wit.Fired(
                clock=wit.Clock[clock.upper()],
                keys=self.declaration.key.batch(HOST.keys),
                times=[earliest[key] for key in HOST.keys],
                watermark=self._watermark,
            )
            results._take(self.function.on_timer(fired))


class _WindowedTest(_Test):
    _window = (0, 1)

    def window(self, start: int, end: int) -> Any:
        """Says which window the rows are in."""
        self._window = (start, end)
        return self


class _AggregateTest(_WindowedTest):
    def run(self, rows: list[tuple[Any, Any]], parts: int = 1) -> Results:
        """Gives rows, each with its key, and finishes their groups; in several parts, of which each is accumulated by
        itself and then merged."""
        from .. import _wit as wit

        function, of = self.function, self.declaration.accumulator
        keys = list(dict.fromkeys(key for key, _ in rows))
        merged: Any = None
        rejected: list[Any] = []
        for part in range(parts):
            chosen = rows[part::parts]
            cells = of.batch_of_present([None] * len(keys))
            groups = [keys.index(key) for key, _ in chosen]
            added = function.accumulate(function.row.batch([row for _, row in chosen]), None, groups, cells)
            rejected.extend(added.rejected)
            accumulators = added.accumulators
            merged = accumulators if merged is None else function.merge(merged, accumulators)
        windows = [wit.Window(*self._window)] * len(keys)
        finished = function.finish(merged, self.declaration.key.batch(keys), list(range(len(keys))), windows)
        results = Results(self.declaration)._take(finished)
        results.rejected.extend((each.row, each.reason) for each in rejected)
        return results


class _WindowTest(_WindowedTest):
    def run(self, rows: list[tuple[Any, Any]]) -> Results:
        """Gives rows, each with its key, as one window a key."""
        from .. import _wit as wit

        keys = list(dict.fromkeys(key for key, _ in rows))
        offsets, contents = [0], list[Any]()
        for key in keys:
            contents.extend(row for of, row in rows if of == key)
            offsets.append(len(contents))
        windows = [wit.Window(*self._window)] * len(keys)
        batch, key_batch = self.declaration.row.batch(contents), self.declaration.key.batch(keys)
        made = self.function.apply(batch, offsets, key_batch, list(range(len(keys))), windows)
        return Results(self.declaration)._take(made)


def map(function: Any) -> _MapTest:
    """Starts a test of a map function."""
    return _MapTest(function)


def process(function: Any) -> _ProcessTest:
    """Starts a test of a process function."""
    return _ProcessTest(function)


def aggregate(function: Any) -> _AggregateTest:
    """Starts a test of an aggregate function."""
    return _AggregateTest(function)


def window(function: Any) -> _WindowTest:
    """Starts a test of a window function."""
    return _WindowTest(function)
