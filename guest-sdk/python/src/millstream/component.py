"""The exports of a component. `millstream build` makes the program that it starts from, which calls `module` and imports
the user's functions.

One instance is one open function. An exception ends the instance: a trap carries no text, so its traceback is handed to
the host first. What the SDK itself refuses is the error of the call.
"""

from __future__ import annotations

import functools
import linecache
import logging
import sys
import traceback
from typing import Any, Callable

from componentize_py_types import Err  # type: ignore[import-not-found]

from . import _sandbox
from . import module as modules
from ._boundary import Level, host
from ._columns import MismatchError
from ._declaration import Opened
from .context import _LogHandler, _LogStream
from .parameters import ParameterError

_described = ("", "", "")
_opened: Opened | None = None

REFUSALS = (MismatchError, ParameterError)


def module(name: str, version: str, doc: str) -> None:
    """Says who the module is."""
    global _described
    _described = (name, version, doc)


def check() -> None:
    """Makes the manifest once, so that what is declared wrongly is an error of the build, and readies Python for a life
    without files and clocks."""
    modules.describe(*_described)
    _sandbox.prepare()


def _reported(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            _sandbox.begin_call()
            return function(*arguments)
        except Err:
            raise
        except REFUSALS as error:
            raise Err(str(error)) from None
        except BaseException as error:
            host.panicked(_text(error))
            raise

    return call


def _text(error: BaseException) -> str:
    """The exception and where it came from, without the SDK's own frames. The `traceback` module would read files."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [each for each in frames if "/millstream/" not in each[0].co_filename]
    lines = [text, "Traceback (most recent call last):"]
    for code, line in own or frames:
        # The folders of the build are numbered.
        file = code.co_filename.lstrip("/0123456789") or code.co_filename
        lines.append(f'  File "{file}", line {line}, in {code.co_qualname}')
        if source := linecache.getline(code.co_filename, line).strip():
            lines.append(f"    {source}")
    return "\n".join(lines)


def _open(name: str, kind: str) -> None:
    global _opened
    sys.stdout, sys.stderr = _LogStream(Level.INFO), _LogStream(Level.WARN)
    logging.basicConfig(handlers=[_LogHandler()], level=logging.NOTSET, force=True)
    _opened = modules.open_function(name, kind)


def _open_one() -> Any:
    if _opened is None:
        raise Err("a call to a function that is not open")
    return _opened


def _finish(result: Any) -> Any:
    sys.stdout.flush()
    sys.stderr.flush()
    return result


def _close() -> None:
    global _opened
    if _opened is not None:
        _opened.close()
        _opened = None


class Manifest:
    """Says what is in the module."""

    def describe(self) -> str:
        return modules.describe(*_described)


class MapFunction:
    """Map functions."""

    @_reported
    def open(self, function: str) -> None:
        _open(function, "map")

    @_reported
    def apply(self, input: Any, times: Any) -> Any:
        return _finish(_open_one().apply(input, times))

    @_reported
    def close(self) -> None:
        _close()


class ProcessFunction:
    """Process functions."""

    @_reported
    def open(self, function: str) -> None:
        _open(function, "process")

    @_reported
    def process(self, input: Any) -> Any:
        return _finish(_open_one().process(input))

    @_reported
    def on_timer(self, timers: Any) -> Any:
        return _finish(_open_one().on_timer(timers))

    @_reported
    def close(self) -> None:
        _close()


class AggregateFunction:
    """Aggregate functions."""

    @_reported
    def open(self, function: str) -> None:
        _open(function, "aggregate")

    @_reported
    def accumulate(self, rows: Any, times: Any, group_of_row: Any, accumulators: Any) -> Any:
        return _finish(_open_one().accumulate(rows, times, group_of_row, accumulators))

    @_reported
    def merge(self, into: Any, other: Any) -> Any:
        return _finish(_open_one().merge(into, other))

    @_reported
    def finish(self, accumulators: Any, keys: Any, key_of_group: Any, windows: Any) -> Any:
        return _finish(_open_one().finish(accumulators, keys, key_of_group, windows))

    @_reported
    def close(self) -> None:
        _close()


class WindowFunction:
    """Window functions."""

    @_reported
    def open(self, function: str) -> None:
        _open(function, "window")

    @_reported
    def apply(self, rows: Any, times: Any, offsets: Any, keys: Any, key_of_window: Any, windows: Any) -> Any:
        return _finish(_open_one().apply(rows, offsets, keys, key_of_window, windows))

    @_reported
    def close(self) -> None:
        _close()


class Lifecycle:
    """Moments besides the rows."""

    @_reported
    def before_barrier(self) -> Any:
        return _finish(_open_one().before_barrier())

    @_reported
    def end_of_input(self) -> Any:
        return _finish(_open_one().end_of_input())


class Migration:
    """Stored values of an earlier version."""

    @_reported
    def migrate(self, state: str, stored_version: int, cells: Any) -> Any:
        return modules.migrate(_open_one().declaration, state, stored_version, cells)
