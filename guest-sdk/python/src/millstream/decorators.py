"""The decorators that make functions."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Callable, TypeVar, overload

from ._aggregate import Aggregate
from ._declaration import Declaration
from ._map import Map
from ._process import Process
from ._window import WindowFunction
from .rows import DeclarationError

F = TypeVar("F")

REGISTRY: list[Declaration] = []
"""All functions that have been declared, in order: what a module has."""


def _declare(target: F, declaration: Declaration) -> F:
    target.__millstream__ = declaration  # type: ignore[attr-defined]
    for at, other in enumerate(REGISTRY):
        if other.name == declaration.name:
            if other.target.__module__ != declaration.target.__module__:
                raise DeclarationError(f"two functions are called `{other.name}`: name one with `name=`")
            REGISTRY[at] = declaration
            return target
    REGISTRY.append(declaration)
    return target


def declaration(target: Any) -> Declaration:
    """What a decorator made of a function."""
    found = getattr(target, "__millstream__", None)
    if found is None:
        raise DeclarationError(f"{target!r} is no function of Millstream: it has no decorator")
    return found  # type: ignore[no-any-return]


@overload
def map(target: F, /) -> F: ...
@overload
def map(*, name: str | None = None, carry: str | None = None) -> Callable[[F], F]: ...
def map(target: Any = None, /, *, name: str | None = None, carry: str | None = None) -> Any:
    """A function of a row, or a class with a method `map`. What it returns says how many rows come of one: `Row`, `Row |
    None`, `list[Row]` or another iterable, or `bool` to keep the row as it is or not. `Reject` refuses a row."""
    return _decorate(target, lambda each: Map(each, name, carry))


@overload
def process(target: F, /) -> F: ...
@overload
def process(
    *, name: str | None = None, carry: str | None = None, timers: tuple[str, ...] | None = None
) -> Callable[[F], F]: ...
def process(
    target: Any = None, /, *, name: str | None = None, carry: str | None = None, timers: tuple[str, ...] | None = None
) -> Any:
    """A class with state and a method `process(self, key, row, …)`, perhaps `on_timer(self, key, timer, …)`."""
    return _decorate(target, lambda each: Process(each, name, carry, timers))


@overload
def aggregate(target: F, /) -> F: ...
@overload
def aggregate(*, name: str | None = None, carry: str | None = None) -> Callable[[F], F]: ...
def aggregate(target: Any = None, /, *, name: str | None = None, carry: str | None = None) -> Any:
    """A class with `add(self, accumulator, row, …)`, `finish(self, accumulator, …)`, and perhaps `merge(self, into,
    other)` and `create(self)`. `add` and `merge` change the accumulator or return another."""
    return _decorate(target, lambda each: Aggregate(each, name, carry))


@overload
def window(target: F, /) -> F: ...
@overload
def window(*, name: str | None = None, carry: str | None = None) -> Callable[[F], F]: ...
def window(target: Any = None, /, *, name: str | None = None, carry: str | None = None) -> Any:
    """A function `(key, window: Window, rows: list[Row], …)`, or a class with such a method `apply`."""
    return _decorate(target, lambda each: WindowFunction(each, name, carry))


def _decorate(target: Any, make: Callable[[Any], Declaration]) -> Any:
    if target is not None:
        return _declare(target, make(target))
    return lambda each: _declare(each, make(each))


def input(method: F) -> F:
    """Marks a method of a process function as the one for the input of its name, where there are several."""
    method.__millstream_input__ = True  # type: ignore[attr-defined]
    return method


def state(*, version: int) -> Callable[[F], F]:
    """Says which version a stored dataclass is; `migrate` takes earlier ones over."""

    def mark(cls: F) -> F:
        cls.__millstream_version__ = version  # type: ignore[attr-defined]
        return cls

    return mark


def migrate(*, version: int) -> Callable[[F], F]:
    """A function that makes the stored row of today of one of an earlier version: its annotations say which is which."""

    def mark(function: F) -> F:
        hints = typing.get_type_hints(function)
        made = hints.pop("return", None)
        if not isinstance(made, type) or not dataclasses.is_dataclass(made) or len(hints) != 1:
            raise DeclarationError("a migration takes one stored row and returns a dataclass")
        (stored,) = hints.values()
        if "__millstream_migrations__" not in made.__dict__:
            setattr(made, "__millstream_migrations__", {})
        getattr(made, "__millstream_migrations__")[version] = (stored, function)
        return function

    return mark


def column(name: str, **options: Any) -> Any:
    """A field of a row whose column has another name: `type_: str = column("type")`."""
    return dataclasses.field(metadata={"column": name}, **options)
