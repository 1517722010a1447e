"""What is on the other side: the generated bindings within a component, the host in memory anywhere else."""

from __future__ import annotations

from typing import Any

IN_COMPONENT: bool

try:
    from wit_world.exports.aggregate_function import Accumulated  # type: ignore[import-not-found]
    from wit_world.imports import (  # type: ignore[import-not-found]
        context,
        operator_state,
        state,
        timers,
        types,
    )

    Level = context.Level
    IN_COMPONENT = True
except ImportError:
    from . import _wit as types
    from ._wit import Accumulated, Level
    from .testing import _host

    context = operator_state = state = timers = _host.HOST
    IN_COMPONENT = False

host: Any = context

__all__ = ["IN_COMPONENT", "Accumulated", "Level", "host", "operator_state", "state", "timers", "types"]
