"""A declared function: what the manifest says of it, and how it opens. One subclass a kind."""

from __future__ import annotations

import inspect
import typing
from functools import cached_property
from typing import Any

from . import parameters as params
from ._collector import Collector, outcome
from ._signature import Argument, Signature, check_returns, signature
from .context import Context
from .rows import DeclarationError, Schema, schema, snake_case
from .state import HANDLES, OperatorState, open_state

HOOKS = ("open", "close", "before_barrier", "end_of_input")


class Port:
    """An output: its name, and what its rows are."""

    def __init__(self, name: str, of: Schema, carry: str) -> None:
        self.name = name
        self.schema = of
        self.carry = carry


class Declaration:
    """What a decorator made of a function or class. Annotations are read when they are first needed, so that they may
    name what stands further down in the file."""

    kind = ""
    carry = "extend"
    keyed_state = False
    entry = ""

    def __init__(self, target: Any, name: str | None, carry: str | None) -> None:
        self.target = target
        self.is_class = inspect.isclass(target)
        self.name = name or (snake_case(target.__name__) if self.is_class else target.__name__)
        self.doc = (inspect.getdoc(target) or "").split("\n")[0]
        if carry not in (None, "extend", "replace"):
            raise DeclarationError(f'`{self.name}`: carry is "extend" or "replace", found {carry!r}')
        self.carry = carry or type(self).carry

    def methods(self) -> dict[str, Signature]:
        """The methods that the host calls."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """As the manifest has it."""
        self.check()
        return {
            "name": self.name,
            "kind": self.kind,
            "doc": self.doc,
            "parameters": [spec.describe() for spec in self.parameters],
            "inputs": self.inputs(),
            "key": self.key.describe(),
            "outputs": [
                {"name": port.name, "columns": port.schema.describe(), "carry": port.carry} for port in self.ports
            ],
            "states": [self._describe_state(name, *state) for name, state in self.states.items()],
            "timers": self.timers(),
            "lifecycle": [hook.replace("_", "-") for hook in ("before_barrier", "end_of_input") if hook in self.hooks],
        }

    def check(self) -> None:
        """Refuses what makes no manifest."""
        for method in self.methods().values():
            check_returns(method)
        for name, (origin, _) in self.states.items():
            if not self.keyed_state and not issubclass(origin, OperatorState):
                raise DeclarationError(
                    f"state `{name}` of `{self.name}` is kept by key, and a {self.kind} function has none: expected "
                    f"OperatorState or UnionState"
                )

    def inputs(self) -> list[dict[str, Any]]:
        """The input ports."""
        raise NotImplementedError

    def timers(self) -> list[str]:
        """The clocks of its timers."""
        return []

    @cached_property
    def key(self) -> Schema:
        """The key columns that it sees."""
        return schema(None)

    @cached_property
    def hooks(self) -> dict[str, Signature]:
        """The life-cycle methods that it has."""
        if not self.is_class:
            return {}
        return {name: self.signature(name) for name in HOOKS if callable(getattr(self.target, name, None))}

    def signature(self, method: str = "") -> Signature:
        """The signature of a method, or of the function itself."""
        if not self.is_class:
            return signature(self.target, "", method=False)
        found = getattr(self.target, method, None)
        if found is None:
            raise DeclarationError(f"`{self.target.__name__}` has no method `{method}`, which a {self.kind} function needs")
        return signature(found, self.target.__name__, method=True)

    @cached_property
    def ports(self) -> list[Port]:
        """The outputs: the main one, then the side outputs by the names of the arguments that collect them."""
        ports: list[Port] = []
        main = self.main_output()
        if main is not None:
            ports.append(Port("output", schema(main), self.carry))
        for method in [*self.methods().values(), *self.hooks.values()]:
            for argument in method.collectors():
                if self._port_of(argument) is not None:
                    continue
                is_main = not ports
                name = "output" if is_main else argument.name
                port = Port(name, schema(argument.annotation), self.carry if is_main else "replace")
                self._port_names[argument.name] = len(ports)
                ports.append(port)
        return ports or [Port("output", schema(None), self.carry)]

    @cached_property
    def _port_names(self) -> dict[str, int]:
        return {"out": 0} if self.main_output() is not None else {}

    def main_output(self) -> Any:
        """The row of the main output where methods return it; None if a collector takes it."""
        for method in self.methods().values():
            if method.returns.how == "keep":
                return type(None)
            if method.returns.how not in ("nothing", "unsaid"):
                return method.returns.annotation
        return None

    def _port_of(self, argument: Argument) -> int | None:
        return self._port_names.get(argument.name)

    @cached_property
    def parameters(self) -> list[params.ParameterSpec]:
        """What the job file may set."""
        specs = []
        if self.is_class:
            hints = typing.get_type_hints(self.target, include_extras=True)
            for name, value in self.target.__dict__.items():
                if params.is_field(value):
                    if name not in hints:
                        raise DeclarationError(f"parameter `{name}` of `{self.target.__name__}` has no annotation")
                    specs.append(params.spec_of(name, hints[name], value.default, value.doc, self.target.__name__))
        for method in self.methods().values():
            for argument in method.arguments:
                if argument.role == "parameters":
                    specs.extend(spec for spec in params.specs_of(argument.annotation) if spec not in specs)
        return specs

    @cached_property
    def states(self) -> dict[str, tuple[Any, tuple[Any, ...]]]:
        """The state handles that its class is annotated with."""
        if not self.is_class:
            return {}
        hints = typing.get_type_hints(self.target, include_extras=True)
        states = {}
        for name, annotation in hints.items():
            origin = typing.get_origin(annotation)
            if origin in HANDLES:
                states[name] = (origin, typing.get_args(annotation))
            elif annotation in HANDLES:
                raise DeclarationError(f"state `{name}` of `{self.name}`: expected what is in it, as in `ValueState[int]`")
        return states

    def _describe_state(self, name: str, origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        value = arguments[-1]
        described = {"name": name, "kind": origin.kind, "columns": schema(value).describe(), **versions(value)}
        if issubclass(origin, OperatorState):
            described["redistribution"] = origin.redistribution
        return described

    def open(self) -> "Opened":
        """Opens it: reads parameters, opens states."""
        raise NotImplementedError


def versions(value: Any) -> dict[str, Any]:
    """Version of a stored row, and the earlier ones that are taken over."""
    version = getattr(value, "__millstream_version__", 1)
    migrations = getattr(value, "__millstream_migrations__", {})
    return {"version": version, **({"migrates-from": sorted(migrations)} if migrations else {})}


class Opened:
    """An open function: an instance of its class, with parameters and states in place, and its collectors."""

    context_type = Context

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.context: Any = self.context_type()
        self.collectors: list[Collector[Any]] = [
            Collector(at, port.schema) for at, port in enumerate(declaration.ports)
        ]
        values = {spec.name: spec.read() for spec in declaration.parameters}
        self.states: list[Any] = []
        self.instance = None
        if declaration.is_class:
            self.instance = declaration.target()
            for spec in declaration.parameters:
                if params.is_field(declaration.target.__dict__.get(spec.name)):
                    setattr(self.instance, spec.name, values[spec.name])
            for name, (origin, arguments) in declaration.states.items():
                handle = open_state(name, origin, arguments)
                self.states.append(handle)
                setattr(self.instance, name, handle)
        if "open" in declaration.hooks:
            self._hook("open")

    def function(self, method: str = "") -> Any:
        """The function, or the bound method, that rows are given to."""
        return getattr(self.instance, method) if self.declaration.is_class else self.declaration.target

    def arguments(self, method: Signature, behind: int) -> tuple[list[Any], int | None]:
        """What follows the first arguments of a method, and the position of the event time in it."""
        values: list[Any] = []
        time_at = None
        for argument in method.arguments[behind:]:
            match argument.role:
                case "context":
                    values.append(self.context)
                case "event-time":
                    time_at = len(values)
                    values.append(None)
                case "parameters":
                    values.append(params.read_all(argument.annotation))
                case "collector":
                    values.append(self.collectors[self.declaration._port_names[argument.name]])
                case _:
                    raise DeclarationError(
                        f"`{method.name}`: the argument `{argument.name}` is more than is given here"
                    )
        return values, time_at

    def begin(self, keys: int = 0) -> None:
        """Starts a call with so many keys."""
        self.context._begin()
        for state in self.states:
            state._begin(keys)

    def flush(self) -> None:
        """Ends a call: hands over what was written, counted and set."""
        for state in self.states:
            state._flush()
        self.context._flush()

    def select(self, key: int) -> None:
        """Says which of the call's keys is the current one."""
        for state in self.states:
            state._key = key

    def before_barrier(self) -> Any:
        """What it emits goes out before the barrier."""
        return self._hook("before_barrier")

    def end_of_input(self) -> Any:
        """No row will follow."""
        return self._hook("end_of_input")

    def close(self) -> None:
        """The instance goes away in good order."""
        if "close" in self.declaration.hooks:
            self._hook("close")

    def _hook(self, name: str) -> Any:
        if name in self.declaration.hooks:
            self.begin()
            values, _ = self.arguments(self.declaration.hooks[name], 0)
            self.function(name)(*values)
            self.flush()
        return outcome(self.collectors, 0)
