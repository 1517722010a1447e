"""A module: its manifest, and the functions that it opens by name."""

from __future__ import annotations

import json
from typing import Any

from . import _columns
from ._boundary import types
from ._declaration import Declaration, Opened
from .decorators import REGISTRY
from .rows import DeclarationError, schema

VERSION = "0.1.0"


def describe(name: str, version: str, doc: str) -> str:
    """The manifest."""
    module = {"name": name, "version": version, "doc": doc, "sdk": f"python {VERSION}"}
    functions = [_described(declaration) for declaration in REGISTRY]
    return json.dumps({"manifest": 1, "module": module, "functions": functions}, ensure_ascii=False)


def _described(declaration: Declaration) -> dict[str, Any]:
    """The part of one function; what is wrong with it is told with its place."""
    try:
        return declaration.describe()
    except DeclarationError as error:
        of = declaration.target
        code = getattr(of, "__code__", None)
        line = code.co_firstlineno if code else getattr(of, "__firstlineno__", None)
        place = f"{of.__module__}, line {line}" if line else of.__module__
        raise DeclarationError(f"function `{declaration.name}` ({place}): {error}") from None


def open_function(name: str, kind: str) -> Opened:
    """Opens the function of a name, which must be of a kind."""
    found = find(name)
    if found.kind != kind:
        raise _columns.MismatchError(f"`{name}` is of kind {found.kind}: expected a function of kind {kind}")
    return found.open()


def find(name: str) -> Declaration:
    """The function of a name."""
    for declaration in REGISTRY:
        if declaration.name == name:
            return declaration
    names = ", ".join(declaration.name for declaration in REGISTRY)
    raise _columns.MismatchError(f"no function `{name}` in this module: expected one of {names}")


def migrate(function: Declaration, state: str, version: int, cells: Any) -> Any:
    """Takes stored values of an earlier version over; the accumulators of a function are the state `windows`."""
    if state == "windows" and hasattr(function, "accumulator"):
        value = function.accumulator.annotation
    else:
        value = function.states[state][1][-1]
    stored, migration = value.__millstream_migrations__[version]
    present = _columns.unpack_bits(cells.present, cells.values.rows)
    rows = schema(stored).read_present(cells.values, present)
    made = [None if row is None else migration(row) for row in rows]
    return types.Cells(present=cells.present, values=schema(value).batch_of_present(made).values)
