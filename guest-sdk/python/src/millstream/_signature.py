"""What the arguments of a function or method are, by their annotations."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from dataclasses import dataclass
from typing import Any, Callable

from ._collector import Collector
from .context import Context, ProcessContext, Timer, Window
from .parameters import is_parameters
from .rows import Columns, DeclarationError
from .values import EventTime, strip_optional

_MANY = (
    list,
    tuple,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Sequence,
    collections.abc.Generator,
    collections.abc.Collection,
)


@dataclass(frozen=True)
class Argument:
    """A parameter of a function: its role is `context`, `event-time`, `parameters`, `collector`, `columns`, `window`,
    `timer` or `plain`, and its annotation that of what is inside."""

    name: str
    role: str
    annotation: Any


@dataclass(frozen=True)
class Returns:
    """What a function returns: `how` is `nothing`, `one`, `optional`, `many`, `keep` or `columns`, or `unsaid` where no
    annotation says it."""

    how: str
    annotation: Any


@dataclass(frozen=True)
class Signature:
    """The arguments of a function, without `self`, and what it returns."""

    name: str
    arguments: list[Argument]
    returns: Returns

    def has(self, role: str) -> bool:
        """Whether an argument has a role."""
        return any(argument.role == role for argument in self.arguments)

    def collectors(self) -> list[Argument]:
        """The arguments that are collectors."""
        return [argument for argument in self.arguments if argument.role == "collector"]


def signature(function: Callable[..., Any], owner: str, method: bool) -> Signature:
    """Reads the annotations of a function."""
    name = f"{owner}.{function.__name__}" if method else function.__name__
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DeclarationError(f"`{name}`: an annotation cannot be resolved: {error}") from None
    parameters = list(inspect.signature(function).parameters.values())
    arguments = []
    for parameter in parameters[1:] if method else parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise DeclarationError(f"`{name}`: found *{parameter.name}, expected plain arguments")
        if parameter.name not in hints:
            raise DeclarationError(f"`{name}`: the argument `{parameter.name}` has no annotation")
        arguments.append(_argument(parameter.name, hints[parameter.name]))
    if "return" not in hints and not inspect.isgeneratorfunction(function):
        returns = Returns("unsaid", None)
    elif "return" not in hints:
        raise DeclarationError(f"`{name}` yields and has no annotation of what: expected `-> Iterator[Row]`")
    else:
        returns = _returns(hints["return"], name)
    return Signature(name, arguments, returns)


def _argument(name: str, annotation: Any) -> Argument:
    if annotation == EventTime:
        return Argument(name, "event-time", annotation)
    if is_parameters(annotation):
        return Argument(name, "parameters", annotation)
    for known, role in ((ProcessContext, "context"), (Context, "context"), (Window, "window"), (Timer, "timer")):
        if annotation is known:
            return Argument(name, role, annotation)
    for generic, role in ((Collector, "collector"), (Columns, "columns")):
        if typing.get_origin(annotation) is generic:
            return Argument(name, role, typing.get_args(annotation)[0])
    return Argument(name, "plain", annotation)


def _returns(annotation: Any, name: str) -> Returns:
    if annotation is type(None):
        return Returns("nothing", None)
    inner, optional = strip_optional(annotation)
    origin = typing.get_origin(inner)
    if inner is bool:
        return Returns("keep", bool)
    if origin is Columns:
        return Returns("columns", typing.get_args(inner)[0])
    if origin in _MANY:
        arguments = typing.get_args(inner)
        if not arguments:
            raise DeclarationError(f"`{name}` returns {inner}: expected what is in it, as in `list[Row]`")
        return Returns("many", arguments[0])
    return Returns("optional" if optional else "one", inner)


def check_returns(of: Signature, expected: str = "`-> Row`, `-> Row | None`, `-> list[Row]` or `-> Iterator[Row]`") -> None:
    """Refuses a function that does not say what it makes: its output would have no columns, and nothing would come out."""
    if of.returns.how == "unsaid":
        raise DeclarationError(
            f"`{of.name}` has no annotation of what it returns, of which its output is made: expected {expected}, or "
            f"`-> None` for a function that returns nothing"
        )


def check_roles(of: Signature, allowed: tuple[str, ...]) -> None:
    """Refuses arguments that this kind of function does not get."""
    for argument in of.arguments:
        if argument.role not in allowed:
            raise DeclarationError(
                f"`{of.name}`: the argument `{argument.name}` is a {argument.role}, which is not given here"
            )
