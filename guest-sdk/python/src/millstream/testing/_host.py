"""The host in memory, for functions that run natively: what a component would import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import _wit as wit


@dataclass
class _Task:
    job: str = "test"
    operator: str = "test"
    subtask: int = 0
    parallelism: int = 1
    attempt: int = 0


@dataclass
class Host:
    """What it holds for the function under test. Stored values stay in the form in which they cross the boundary."""

    parameters: dict[str, str] = field(default_factory=dict)
    logs: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    time: int = 0
    seed: int = 0
    # Keys of the current call, by position.
    keys: list[Any] = field(default_factory=list)
    timers_set: set[tuple[str, int, Any]] = field(default_factory=set)
    stored: dict[tuple[str, Any], Any] = field(default_factory=dict)
    items: dict[str, wit.Batch] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    # Calls that crossed the boundary, so that a test can hold their number.
    calls: int = 0

    def reset(self, schemas: dict[str, Any]) -> None:
        """Starts anew for a function with these states."""
        self.__init__(schemas=schemas)  # type: ignore[misc]

    def log(self, level: wit.Level, message: str) -> None:
        self.logs.append((level.name.lower(), message))

    def parameter(self, name: str) -> str | None:
        return self.parameters.get(name)

    def count(self, metric: str, by: int) -> None:
        self.calls += 1
        self.counts[metric] = self.counts.get(metric, 0) + by

    def gauge(self, metric: str, value: float) -> None:
        self.calls += 1
        self.gauges[metric] = value

    def task(self) -> _Task:
        return _Task()

    def now(self) -> int:
        return self.time

    def random(self) -> int:
        self.seed += 1
        return self.seed

    def set(self, clock: wit.Clock, keys: list[int], times: list[int]) -> None:
        self.calls += 1
        for key, time in zip(keys, times):
            self.timers_set.add((clock.name.lower(), time, self.keys[key]))

    def clear(self, clock: wit.Clock, keys: list[int], times: list[int]) -> None:
        self.calls += 1
        for key, time in zip(keys, times):
            self.timers_set.discard((clock.name.lower(), time, self.keys[key]))

    def open_value(self, name: str) -> "_Value":
        return _Value(self, name)

    def open_list(self, name: str) -> "_List":
        return _List(self, name)

    def open_map(self, name: str) -> "_Map":
        return _Map(self, name)

    def open_items(self, name: str) -> "_Items":
        return _Items(self, name)


class _State:
    """A state of the host: rows are kept one by one, as tuples of values."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self.schema = host.schemas[name]

    def key(self, position: int) -> tuple[str, Any]:
        return self.name, self.host.keys[position]

    def rows(self, batch: wit.Batch, present: list[bool] | None = None) -> list[Any]:
        self.host.calls += 1
        return self.schema.read_present(batch, present or [True] * batch.rows)  # type: ignore[no-any-return]

    def cells(self, rows: list[Any]) -> wit.Cells:
        self.host.calls += 1
        return self.schema.batch_of_present(rows)  # type: ignore[no-any-return]


class _Value(_State):
    def read(self, keys: list[int]) -> wit.Cells:
        return self.cells([self.host.stored.get(self.key(key)) for key in keys])

    def write(self, keys: list[int], cells: wit.Cells) -> None:
        for key, row in zip(keys, self.rows(cells.values, _bits(cells.present, len(keys)))):
            self.host.stored[self.key(key)] = row


class _List(_State):
    def read(self, keys: list[int]) -> wit.Runs:
        self.host.calls += 1
        offsets, rows = [0], []
        for key in keys:
            rows.extend(self.host.stored.get(self.key(key), []))
            offsets.append(len(rows))
        return wit.Runs(offsets, self.schema.batch(rows))

    def append(self, keys: list[int], items: wit.Runs) -> None:
        rows = self.rows(items.items)
        for key, start, end in zip(keys, items.offsets, items.offsets[1:]):
            self.host.stored.setdefault(self.key(key), []).extend(rows[start:end])

    def clear(self, keys: list[int]) -> None:
        self.host.calls += 1
        for key in keys:
            self.host.stored.pop(self.key(key), None)


class _Map(_State):
    def entries(self, key: int) -> dict[bytes, Any]:
        entries: dict[bytes, Any] = self.host.stored.setdefault(self.key(key), {})
        return entries

    def read(self, keys: list[int], map_keys: wit.VarValues) -> wit.Cells:
        return self.cells([self.entries(key).get(name) for key, name in zip(keys, _texts(map_keys))])

    def write(self, keys: list[int], map_keys: wit.VarValues, cells: wit.Cells) -> None:
        rows = self.rows(cells.values, _bits(cells.present, len(keys)))
        for key, name, row in zip(keys, _texts(map_keys), rows):
            if row is None:
                self.entries(key).pop(name, None)
            else:
                self.entries(key)[name] = row

    def scan(self, keys: list[int], start: bytes | None, limit: int) -> wit.Entries:
        self.host.calls += 1
        offsets: list[int] = [0]
        names: list[bytes] = []
        rows: list[Any] = []
        for key in keys:
            found = sorted(
                ((name, row) for name, row in self.entries(key).items() if start is None or name >= start),
                key=lambda entry: entry[0],
            )
            names.extend(name for name, _ in found[:limit])
            rows.extend(row for _, row in found[:limit])
            offsets.append(len(rows))
        from .._columns import pack_var

        return wit.Entries(offsets, pack_var(names), self.schema.batch(rows))

    def clear(self, keys: list[int]) -> None:
        self.host.calls += 1
        for key in keys:
            self.host.stored.pop(self.key(key), None)


class _Items(_State):
    def read(self) -> wit.Batch:
        return self.host.items.get(self.name) or self.schema.batch([])

    def replace(self, items: wit.Batch) -> None:
        self.host.calls += 1
        self.host.items[self.name] = items


def _bits(data: bytes, rows: int) -> list[bool]:
    return [bool(data[row >> 3] >> (row & 7) & 1) for row in range(rows)]


def _texts(values: wit.VarValues) -> list[bytes]:
    return [values.bytes[start:end] for start, end in zip(values.offsets, values.offsets[1:])]


HOST = Host()
