"""Parameters that a job file may set, typed and checked when a function opens."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

from ._boundary import host
from .values import ColumnType, column_type

T = TypeVar("T")

REQUIRED: Any = object()


class ParameterError(Exception):
    """The job file's parameters do not fit; its text is for who wrote the job file."""


@dataclass(frozen=True)
class ParameterSpec:
    """A parameter: its name, its type, its default if it has one, and what it means."""

    name: str
    type: ColumnType
    default: Any
    doc: str

    def describe(self) -> dict[str, Any]:
        """As the manifest has it."""
        described: dict[str, Any] = {"name": self.name, "type": self.type.name, "doc": self.doc}
        if self.default is not REQUIRED:
            described["default"] = _text(self.default)
        return described

    def read(self) -> Any:
        """Its value, from the job file or else the default."""
        text = host.parameter(self.name)
        if text is None:
            if self.default is REQUIRED:
                raise ParameterError(
                    f"parameter `{self.name}` is missing: expected a value of type {self.type.name} in the job file"
                )
            return self.default
        try:
            return _parse(text, self.type.name)
        except ValueError:
            raise ParameterError(f"parameter `{self.name}`: found `{text}`, expected {self.type.name}") from None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _parse(text: str, kind: str) -> Any:
    match kind:
        case "boolean":
            return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse()
        case "int32" | "int64":
            value = int(text)
            return value if -(1 << int(kind[3:]) - 1) <= value < 1 << int(kind[3:]) - 1 else _refuse()
        case "float32" | "float64":
            return float(text)
    return text


def _refuse() -> Any:
    raise ValueError


@dataclass(frozen=True)
class _Field:
    default: Any
    doc: str


def parameter(default: Any = REQUIRED, doc: str = "") -> Any:
    """A parameter as a field of a function's class, or of a class of parameters: `limit: float = parameter(30.0, "…")`."""
    return _Field(default, doc)


@dataclass_transform(field_specifiers=(parameter,))
def parameters(cls: type[T]) -> type[T]:
    """Makes a class one of parameters: a field each, with a default or `parameter(…)`. Map and window functions take it as
    an argument."""
    specs = []
    for name, annotation in typing.get_type_hints(cls, include_extras=True).items():
        given = cls.__dict__.get(name, REQUIRED)
        given = given if isinstance(given, _Field) else _Field(given, "")
        specs.append(spec_of(name, annotation, given.default, given.doc, cls.__name__))
        if isinstance(cls.__dict__.get(name), _Field):
            if given.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, given.default)
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    made.__millstream_parameters__ = specs  # type: ignore[attr-defined]
    return made


def spec_of(name: str, annotation: Any, default: Any, doc: str, owner: str) -> ParameterSpec:
    """A parameter from its annotation."""
    kind = column_type(annotation)
    allowed = ("boolean", "int32", "int64", "float32", "float64", "utf8")
    if kind is None or kind[1] or kind[0].name not in allowed:
        raise TypeError(f"parameter `{name}` of `{owner}`: expected bool, int, Int32, float, Float32 or str")
    return ParameterSpec(name, kind[0], default, doc)


def is_field(value: Any) -> bool:
    """Whether a class attribute is what `parameter(…)` gave."""
    return isinstance(value, _Field)


def is_parameters(annotation: Any) -> bool:
    """Whether an annotation is a class of parameters."""
    return hasattr(annotation, "__millstream_parameters__")


def specs_of(cls: Any) -> list[ParameterSpec]:
    """The parameters of a class of parameters."""
    return list(cls.__millstream_parameters__)


def read_all(cls: type[T]) -> T:
    """An instance with the job file's values."""
    return cls(**{spec.name: spec.read() for spec in specs_of(cls)})
