"""Process functions: rows by key, with state and timers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ._boundary import types
from ._collector import Rejections, outcome
from ._declaration import Declaration, Opened
from ._map import take
from ._signature import Signature, check_roles
from .context import ProcessContext, Reject, Timer
from .rows import DeclarationError, Schema, iterate, key_schema, schema
from .values import NO_TIME


class Process(Declaration):
    """A class with a method `process`, or one under `@input` for each of several inputs, and perhaps `on_timer`."""

    kind = "process"
    carry = "replace"
    keyed_state = True

    def __init__(self, target: Any, name: str | None, carry: str | None, clocks: tuple[str, ...] | None) -> None:
        super().__init__(target, name, carry)
        if not self.is_class:
            raise DeclarationError(f"`{self.name}`: a process function is a class with a method `process`")
        self.clocks = clocks

    @cached_property
    def inputs_by_method(self) -> dict[str, str]:
        """The name of the input that each method takes."""
        marked = [name for name, value in vars(self.target).items() if getattr(value, "__millstream_input__", False)]
        return {name: name for name in marked} or {"process": "input"}

    def methods(self) -> dict[str, Signature]:
        methods = {name: self.signature(name) for name in self.inputs_by_method}
        if callable(getattr(self.target, "on_timer", None)):
            methods["on_timer"] = self.signature("on_timer")
        return methods

    @cached_property
    def key(self) -> Schema:
        return key_schema(self._key_annotation(next(iter(self.inputs_by_method))))

    def _key_annotation(self, method: str) -> Any:
        of = self.signature(method)
        if len(of.arguments) < 2 or of.arguments[0].role != "plain":
            raise DeclarationError(f"`{of.name}`: expected a key and a row as the first arguments; the key may be `None`")
        return of.arguments[0].annotation

    def check(self) -> None:
        super().check()
        for name, method in self.methods().items():
            check_roles(method, ("plain", "context", "event-time", "parameters", "collector", "timer"))
            if key_schema(self._key_annotation(name)) is not self.key:
                raise DeclarationError(f"`{method.name}`: its key is another than that of other methods")
        timer = self.methods().get("on_timer")
        if timer is not None and timer.arguments[1].role != "timer":
            raise DeclarationError(f"`{timer.name}`: expected a Timer as the second argument")
        if unknown := set(self.clocks or ()) - {"event", "processing"}:
            raise DeclarationError(f'`{self.name}`: timers are "event" or "processing", found {unknown.pop()!r}')

    def inputs(self) -> list[dict[str, Any]]:
        inputs = []
        for method, name in self.inputs_by_method.items():
            of = self.signature(method)
            columns = schema(of.arguments[1].annotation).describe()
            inputs.append(
                {"name": name, "distribution": "keyed", "columns": columns, "times": of.has("event-time")}
            )
        return inputs

    def timers(self) -> list[str]:
        if self.clocks is not None:
            return list(self.clocks)
        return ["event"] if callable(getattr(self.target, "on_timer", None)) else []

    def open(self) -> "OpenedProcess":
        return OpenedProcess(self)


class OpenedProcess(Opened):
    """An open process function."""

    context_type = ProcessContext

    def __init__(self, declaration: Process) -> None:
        super().__init__(declaration)
        self.ports = [
            (name, declaration.signature(name), *self.arguments(declaration.signature(name), 2))
            for name in declaration.inputs_by_method
        ]

    def process(self, call: Any) -> Any:
        """Handles a batch."""
        method, of, extra, time_at = self.ports[call.port]
        self.context._start(call.watermark)
        self.begin(call.keys.rows)
        keys = self.declaration.key.read(call.keys)
        rows = schema(of.arguments[1].annotation).read(call.rows)
        function, how = self.function(method), of.returns.how
        rejections = Rejections()
        for at, (row, key) in enumerate(zip(rows, call.key_of_row)):
            if time_at is not None and call.times is not None:
                extra[time_at] = None if call.times[at] == NO_TIME else call.times[at]
            self._select(at, key)
            try:
                made = function(keys[key], row, *extra)
                if how == "many":
                    made = list(iterate(made))
            except Reject as reject:
                rejections.add(at, reject)
                continue
            take(how, made, self.collectors[0])
        self.flush()
        return outcome(self.collectors, call.rows.rows, rejections)

    def on_timer(self, fired: Any) -> Any:
        """Handles due timers, at most one a key."""
        self.context._start(fired.watermark)
        self.begin(fired.keys.rows)
        of = self.declaration.methods().get("on_timer")
        if of is not None:
            clock = "processing" if fired.clock == types.Clock.PROCESSING else "event"
            extra, _ = self.arguments(of, 2)
            function, how = self.function("on_timer"), of.returns.how
            for at, (key, time) in enumerate(zip(self.declaration.key.read(fired.keys), fired.times)):
                self._select(at, at)
                made = function(key, Timer(clock, time), *extra)
                take(how, list(iterate(made)) if how == "many" else made, self.collectors[0])
        self.flush()
        return outcome(self.collectors, fired.keys.rows)

    def _select(self, row: int, key: int) -> None:
        self.context._key = key
        for state in self.states:
            state._key = key
        for collector in self.collectors:
            collector._row = row
