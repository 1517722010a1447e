"""Write Millstream functions in Python: annotated functions and classes over dataclasses, with state and timers that the
host keeps.

**A function's own memory is no state.** The host may drop an instance at any batch boundary and go on with a new one. What
has to last belongs into state; an attribute is a cache at best.
"""

from ._collector import Collector
from .context import Context, ProcessContext, Reject, TaskInfo, Timer, Window
from .decorators import aggregate, column, input, map, migrate, process, state, window
from .module import VERSION as __version__
from .parameters import parameter, parameters
from .rows import Columns, DeclarationError
from .state import ListState, MapState, OperatorState, UnionState, ValueState
from .values import Date, EventTime, Float32, Int32, Timestamp

__all__ = [
    "Collector",
    "Columns",
    "Context",
    "Date",
    "DeclarationError",
    "EventTime",
    "Float32",
    "Int32",
    "ListState",
    "MapState",
    "OperatorState",
    "ProcessContext",
    "Reject",
    "TaskInfo",
    "Timer",
    "Timestamp",
    "UnionState",
    "ValueState",
    "Window",
    "__version__",
    "aggregate",
    "column",
    "input",
    "map",
    "migrate",
    "parameter",
    "parameters",
    "process",
    "state",
    "window",
]
