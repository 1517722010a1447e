"""Python within a component: there is no file, no clock and no chance but the host's.

What of the standard library would reach for them is given the host's in its place, or refuses with a text. The rest of it,
as `datetime.now()`, ends the instance with a trap.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import io
import linecache
import os
import random
import sys
import time
from typing import Any

from ._boundary import host

NO_NETWORK = "functions have no network: what they need comes as rows of a source, or as a parameter"
NO_WAIT = "nothing waits within a call: a process function has timers, by `ctx.set_timer`"
NO_FILES = "functions have no files: read from a source and write to a sink, or take a parameter"


def prepare() -> None:
    """Is called once, when the component is built: takes in the source lines that tracebacks show, while there are files."""
    global _draws
    # Only where functions import it: each seed costs some microseconds a call.
    _draws = any(_is_random(each) for _, module in _own_modules() for each in vars(module).values())
    for _, module in _own_modules():
        path = getattr(module, "__file__", None)
        if path and path.endswith(".py"):
            linecache.getlines(path)
    linecache.checkcache = lambda filename=None: None
    linecache.updatecache = lambda filename, module_globals=None: []
    # The host has been told already, and what Python would print looks into files.
    sys.excepthook = lambda *_: None
    # `io` and the import system share the latter, by which packages read data of theirs.
    builtins.open = io.open = os.open = _no_files
    for name in ("open", "open_code", "FileIO"):
        setattr(sys.modules["_io"], name, _no_files)
    for name in ("stat", "lstat", "listdir", "scandir", "mkdir", "rmdir", "remove", "unlink", "rename", "replace", "access"):
        setattr(os, name, _no_files)
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, _NoLateImports()]
    # What `uuid` and `secrets` draw from.
    os.urandom = random._urandom = _random_bytes  # type: ignore[attr-defined]
    time.sleep = _no_wait
    if "socket" in sys.modules:
        setattr(sys.modules["socket"].socket, "__init__", _no_network)
    time.time = lambda: host.now() / 1000
    time.time_ns = lambda: host.now() * 1_000_000
    time.monotonic = time.perf_counter = time.process_time = time.time
    time.monotonic_ns = time.perf_counter_ns = time.process_time_ns = time.time_ns


def _own_modules() -> list[tuple[str, Any]]:
    """The modules that are not the standard library's."""
    known = sys.stdlib_module_names
    return [(name, each) for name, each in sys.modules.items() if name.split(".")[0] not in known and name != __name__]


def _is_random(value: Any) -> bool:
    """Whether this is the module `random` or one of its functions."""
    return value is random or getattr(value, "__self__", None) is random._inst  # type: ignore[attr-defined]


def begin_call() -> None:
    """Makes what is drawn a matter of the call, so that a replay draws the same."""
    global _bytes
    _bytes = None
    if _draws:
        random.seed(host.random())


def _random_bytes(count: int) -> bytes:
    global _bytes
    if _bytes is None:
        _bytes = random.Random(f"bytes {host.random()}")
    return _bytes.randbytes(count)


_draws = False
_bytes: random.Random | None = None


class _NoLateImports(importlib.abc.MetaPathFinder):
    """Refuses what would have to be looked for in files."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        raise ModuleNotFoundError(
            f"`{fullname}` was not imported when the component was built, and there are no files now: import it at the top "
            f"of a file",
            name=fullname,
        )


def _no_files(*_arguments: Any, **_options: Any) -> Any:
    raise PermissionError(NO_FILES)


def _no_network(*_arguments: Any, **_options: Any) -> Any:
    raise PermissionError(NO_NETWORK)


def _no_wait(_seconds: float) -> None:
    raise PermissionError(NO_WAIT)
