"""The host as a function sees it during one call: log, metrics, time, chance, timers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from ._boundary import Level, host, timers, types
from .values import NO_TIME


@dataclass(frozen=True)
class TaskInfo:
    """The subtask that the function runs in."""

    job: str
    operator: str
    subtask: int
    parallelism: int
    attempt: int


@dataclass(frozen=True)
class Window:
    """A window of event time: from `start` on, up to and without `end`, in milliseconds."""

    start: int
    end: int


@dataclass(frozen=True)
class Timer:
    """A timer that fires: `clock` is "event" or "processing"."""

    clock: str
    time: int


class Reject(Exception):
    """Raised to refuse a row; the operator's policy says what becomes of it."""


class Context:
    """Take it as an argument: `ctx: Context`. Metrics are handed over once a call, time and chance asked for once a
    call, so all of it may be used for every row."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._gauges: dict[str, float] = {}
        self._now: int | None = None
        self._seed: int | None = None

    def log(self, message: str, level: str = "info") -> None:
        """Writes a line to the job's log. The `logging` module goes there too, and so does `print`."""
        host.log(Level[level.upper()], message)

    def count(self, metric: str, by: int = 1) -> None:
        """Adds to a counter of this operator."""
        self._counts[metric] = self._counts.get(metric, 0) + by

    def gauge(self, metric: str, value: float) -> None:
        """Sets a gauge of this operator; the last value of a call is the one that is seen."""
        self._gauges[metric] = value

    def task(self) -> TaskInfo:
        """Who this is."""
        task = host.task()
        return TaskInfo(task.job, task.operator, task.subtask, task.parallelism, task.attempt)

    def now(self) -> int:
        """Processing time in milliseconds since the epoch: fixed within a call, and the same in a replay."""
        if self._now is None:
            self._now = host.now()
        return self._now

    def random(self) -> int:
        """A random number of 64 bits, the same in a replay: splitmix64 from the call's seed."""
        seed = host.random() if self._seed is None else self._seed
        state = seed + 0x9E3779B97F4A7C15 & _MASK
        self._seed = state
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return mixed ^ mixed >> 31

    def _begin(self) -> None:
        self._now = self._seed = None
        self._counts.clear()
        self._gauges.clear()

    def _flush(self) -> None:
        for metric, by in self._counts.items():
            host.count(metric, by)
        for metric, value in self._gauges.items():
            host.gauge(metric, float(value))
        self._counts.clear()
        self._gauges.clear()


_MASK = 2**64 - 1


class ProcessContext(Context):
    """A `Context` with timers of the current key and the watermark. Take it as an argument: `ctx: ProcessContext`."""

    def __init__(self) -> None:
        super().__init__()
        self._key = 0
        self._watermark = NO_TIME
        self._changes: dict[tuple[Any, int, int], bool] = {}

    @property
    def watermark(self) -> int:
        """All rows up to this event time have come; -2**63 while there is no watermark."""
        return self._watermark

    def set_timer(self, time: int) -> None:
        """Fires when the watermark reaches `time`, in milliseconds. Setting a timer twice fires it once."""
        self._changes[types.Clock.EVENT, self._key, time] = True

    def set_processing_timer(self, time: int) -> None:
        """Fires when the host's clock reaches `time`."""
        self._changes[types.Clock.PROCESSING, self._key, time] = True

    def clear_timer(self, time: int) -> None:
        """Takes an event timer back."""
        self._changes[types.Clock.EVENT, self._key, time] = False

    def clear_processing_timer(self, time: int) -> None:
        """Takes a processing timer back."""
        self._changes[types.Clock.PROCESSING, self._key, time] = False

    def _start(self, watermark: int) -> None:
        self._begin()
        self._changes.clear()
        self._watermark = watermark

    def _flush(self) -> None:
        """A timer's last change counts, so there are at most four calls."""
        super()._flush()
        for clock in (types.Clock.EVENT, types.Clock.PROCESSING):
            for wanted, send in ((False, timers.clear), (True, timers.set)):
                chosen = [
                    (key, time)
                    for (of, key, time), is_set in self._changes.items()
                    if of is clock and is_set is wanted
                ]
                if chosen:
                    send(clock, [key for key, _ in chosen], [time for _, time in chosen])
        self._changes.clear()


class _LogHandler(logging.Handler):
    """Takes what goes through the `logging` module to the job's log."""

    def emit(self, record: logging.LogRecord) -> None:
        level = Level.ERROR
        if record.levelno < logging.DEBUG:
            level = Level.TRACE
        elif record.levelno < logging.INFO:
            level = Level.DEBUG
        elif record.levelno < logging.WARNING:
            level = Level.INFO
        elif record.levelno < logging.ERROR:
            level = Level.WARN
        host.log(level, self.format(record))


class _LogStream:
    """Takes what is printed to the job's log, a line at a time."""

    encoding = "utf-8"

    def __init__(self, level: Any) -> None:
        self._level = level
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            host.log(self._level, line)
        return len(text)

    def flush(self) -> None:
        if self._line:
            host.log(self._level, self._line)
            self._line = ""

    def isatty(self) -> bool:
        return False
