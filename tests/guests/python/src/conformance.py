"""Functions that use all of the interface, in Python: the same as in every other language."""

import math
from dataclasses import dataclass
from typing import Iterator

import millstream
from millstream import (
    Collector,
    Context,
    Date,
    EventTime,
    Float32,
    Int32,
    ListState,
    MapState,
    OperatorState,
    ProcessContext,
    Reject,
    Timer,
    Timestamp,
    UnionState,
    ValueState,
    Window,
    parameter,
)


@dataclass
class Plain:
    """A row of every type."""

    boolean: bool
    int32: Int32
    int64: int
    float32: Float32
    float64: float
    timestamp: Timestamp
    date: Date
    utf8: str
    binary: bytes


@millstream.map(carry="replace")
def plain_types(row: Plain) -> Plain:
    """Every type as it came."""
    return row


@dataclass
class Nullable:
    """A row of every type, each perhaps null."""

    boolean: bool | None
    int32: Int32 | None
    int64: int | None
    float32: Float32 | None
    float64: float | None
    timestamp: Timestamp | None
    date: Date | None
    utf8: str | None
    binary: bytes | None


@millstream.map(carry="replace")
def nullable_types(row: Nullable) -> Nullable:
    """Every type as it came, null or not."""
    return row


@dataclass
class Number:
    """A number."""

    n: int


@dataclass
class Doubled:
    """Twice a number."""

    doubled: int


@millstream.map
def doubled(row: Number) -> Doubled:
    """Appends a column."""
    return Doubled(row.n * 2)


@dataclass
class Stamped:
    """A row's event time."""

    event_time: Timestamp | None


@millstream.map
def event_times(_row: None, time: EventTime) -> Stamped:
    """Reads event times and no column."""
    return Stamped(Timestamp(time) if time is not None else None)


@dataclass
class Part:
    """One of several rows."""

    part: int


@millstream.map
def exploded(row: Number) -> Iterator[Part]:
    """As many rows as the number says."""
    for part in range(row.n):
        yield Part(part)


@millstream.map
def kept(row: Number) -> bool:
    """Keeps even numbers."""
    return row.n % 2 == 0


@millstream.map
def refused(row: Number) -> Doubled:
    """Refuses odd numbers."""
    if row.n % 2:
        raise Reject(f"{row.n} is odd")
    return Doubled(row.n * 2)


@dataclass
class Drawn:
    """Time and chance."""

    now: int
    random: int


@millstream.map
def chance(_row: None, ctx: Context) -> Drawn:
    """Emits the time and a random number."""
    random = ctx.random()
    return Drawn(ctx.now(), random - (1 << 64 if random >> 63 else 0))


@dataclass
class Place:
    """Where a function runs."""

    place: str


@millstream.map
def place(_row: None, ctx: Context) -> Place:
    """Emits the job, the operator and the subtask."""
    task = ctx.task()
    return Place(f"{task.job} {task.operator}[{task.subtask}] of {task.parallelism}, attempt {task.attempt}")


@millstream.parameters
class Settings:
    """Parameters of every type."""

    required: int = parameter(doc="Has to be given.")
    flag: bool = True
    int32: Int32 = -3
    float64: float = 1.5
    text: str = "text"


@dataclass
class Configured:
    """The parameters as they were read."""

    settings: str


@millstream.map
def configured(_row: None, settings: Settings) -> Configured:
    """Emits its parameters."""
    flag = "true" if settings.flag else "false"
    number = math.floor(settings.float64) if settings.float64.is_integer() else settings.float64
    return Configured(f"{settings.required} {flag} {settings.int32} {number} {settings.text}")


@millstream.map
def measured(row: Number, ctx: Context) -> bool:
    """Logs each number, counts it and sets a gauge to it."""
    ctx.log(f"number {row.n}")
    ctx.count("numbers")
    ctx.gauge("last_number", row.n)
    return True


@dataclass
class Command:
    """A command for the key's registers."""

    command: str
    name: str
    n: int


@dataclass
class Answer:
    """What a command answered."""

    answer: str


@dataclass
class FiredTimer:
    """A timer that fired."""

    key: str
    processing: bool
    time: int


@millstream.state(version=3)
@dataclass
class Pair:
    """A state of columns."""

    number: int
    text: str | None


@millstream.process(timers=("event", "processing"))
class Registers:
    """Does what its rows say to its states and timers, and answers."""

    value: ValueState[Pair]
    list: ListState[int]
    map: MapState[str, int]

    def process(self, key: str, row: Command, ctx: ProcessContext, out: Collector[Answer]) -> None:
        match row.command:
            case "set":
                self.value.set(Pair(row.n, row.name))
            case "clear":
                self.value.clear()
            case "add":
                self.list.add(row.n)
            case "replace":
                self.list.set([row.n])
            case "empty":
                self.list.clear()
            case "put":
                self.map.put(row.name, row.n)
            case "remove":
                self.map.remove(row.name)
            case "wipe":
                self.map.clear()
            case "timer":
                ctx.set_timer(row.n)
            case "untimer":
                ctx.clear_timer(row.n)
            case "processing-timer":
                ctx.set_processing_timer(row.n)
            case "look":
                out.emit(Answer(self._look(key, row.name, ctx.watermark)))
            case other:
                raise Reject(f"unknown command `{other}`")

    def on_timer(self, key: str, timer: Timer, fired: Collector[FiredTimer]) -> None:
        fired.emit(FiredTimer(key, timer.clock == "processing", timer.time))

    def _look(self, key: str, name: str, watermark: int) -> str:
        pair = self.value.get()
        value = "None" if pair is None else f'Some(({pair.number}, "{pair.text or ""}"))'
        entry = self.map.get(name)
        found = "None" if entry is None else f"Some({entry})"
        entries = " ".join(f"{name}={n}" for name, n in self.map.items())
        items = ", ".join(str(n) for n in self.list.get())
        return f"{key}@{watermark}: value {value}, list [{items}], map [{entries}], entry {found}"


@dataclass
class Reminded:
    """Whether a row is a reminder."""

    reminder: bool


@millstream.process(carry="extend")
class Reminder:
    """Every row, and a reminder of its key when the time comes that it has as its number."""

    def process(self, _key: None, row: Number, ctx: ProcessContext) -> Reminded:
        ctx.set_timer(row.n)
        return Reminded(False)

    def on_timer(self, _key: None, _timer: Timer) -> Reminded:
        return Reminded(True)


@dataclass
class Total:
    """A total, and when it was emitted."""

    at: str
    total: int


@millstream.process
class Totals:
    """Emits the subtask's total before each barrier and at the end of input."""

    totals: OperatorState[int]

    def open(self) -> None:
        if not self.totals.items:
            self.totals.items.append(0)

    def process(self, _key: None, row: Number) -> None:
        self.totals.items[0] += row.n

    def before_barrier(self, out: Collector[Total]) -> None:
        out.emit_at(0, Total("barrier", sum(self.totals.items)))

    def end_of_input(self, out: Collector[Total]) -> None:
        out.emit_at(0, Total("end", sum(self.totals.items)))


@dataclass
class Position:
    """A number's position in its subtask."""

    n: int
    position: int


@millstream.map(carry="replace")
class Positions:
    """Gives each row of a subtask the next number; the last one goes out before each barrier and at the end."""

    last: OperatorState[int]
    steps: UnionState[int]
    step: int = parameter(1)

    def open(self) -> None:
        if not self.last.items:
            self.last.items.append(0)
        self.steps.items.append(self.step)

    def map(self, row: Number, ctx: Context) -> Position | None:
        self.last.items[0] += self.step
        ctx.count("numbered")
        return Position(row.n, self.last.items[0]) if row.n >= 0 else None

    def before_barrier(self, out: Collector[Position]) -> None:
        out.emit_at(1, Position(-1, self.last.items[0]))

    def end_of_input(self, out: Collector[Position]) -> None:
        out.emit_at(2, Position(-2, self.last.items[0]))
        out.emit_at(3, Position(-3, len(self.steps.items)))

    def close(self) -> None:
        print(f"closed at {self.last.items[0]}")


@millstream.aggregate(carry="replace")
class Summed:
    """The sum of a group, times the parameter; how often it has been opened goes out before barriers and at the end."""

    opened: OperatorState[int]
    factor: int = parameter(10)

    def open(self) -> None:
        self.opened.items.append(self.factor)

    def add(self, sum: int, row: Number) -> int:
        return sum + row.n

    def merge(self, into: int, other: int) -> int:
        return into + other

    def finish(self, sum: int) -> Total:
        return Total("window", sum * self.factor)

    def before_barrier(self, out: Collector[Total]) -> None:
        out.emit_at(1, Total("barrier", len(self.opened.items)))

    def end_of_input(self, out: Collector[Total]) -> None:
        out.emit_at(2, Total("end", len(self.opened.items)))


@millstream.window(carry="replace")
class Longest:
    """The length of a window that has the least number of rows; the longest goes out before barriers and at the end."""

    longest: OperatorState[int]
    least: int = parameter(0)

    def open(self) -> None:
        if not self.longest.items:
            self.longest.items.append(0)

    def apply(self, _key: None, _window: Window, rows: list[Number]) -> Total | None:
        self.longest.items[0] = max(len(rows), self.longest.items[0])
        return Total("window", len(rows)) if len(rows) >= self.least else None

    def before_barrier(self, out: Collector[Total]) -> None:
        out.emit_at(1, Total("barrier", self.longest.items[0]))

    def end_of_input(self, out: Collector[Total]) -> None:
        out.emit_at(2, Total("end", self.longest.items[0]))


@dataclass
class Text:
    """A row of text."""

    text: str


@dataclass
class Gathered:
    """An accumulator with text and nulls."""

    rows: int = 0
    smallest: str | None = None
    all: str = ""


@dataclass
class GroupShown:
    """What a group came to."""

    group: str
    start: int
    end: int
    rows: int
    smallest: str | None
    bytes: int


@millstream.aggregate
class Joined:
    """Number of rows, smallest text and number of bytes of a group."""

    def add(self, gathered: Gathered, row: Text) -> None:
        gathered.rows += 1
        gathered.all += row.text
        if gathered.smallest is None or row.text < gathered.smallest:
            gathered.smallest = row.text

    def merge(self, into: Gathered, other: Gathered) -> None:
        into.rows += other.rows
        into.all += other.all
        texts = [text for text in (into.smallest, other.smallest) if text is not None]
        into.smallest = min(texts, default=None)

    def finish(self, gathered: Gathered, group: str, window: Window) -> GroupShown:
        size = len(gathered.all.encode())
        return GroupShown(group, window.start, window.end, gathered.rows, gathered.smallest, size)


@dataclass
class Contents:
    """A window's rows in one text."""

    contents: str


@millstream.window
def contents(key: str, window: Window, rows: list[Text]) -> Contents:
    """Key, window and rows, as text."""
    texts = " ".join(sorted(row.text for row in rows))
    return Contents(f"{key} [{window.start}, {window.end}): {texts}")


@millstream.window(carry="replace")
def whole(_key: None, _window: Window, rows: list[Text]) -> list[Contents]:
    """One row for each row of a window over the whole stream that has more than one."""
    return [Contents(row.text) for row in rows] if len(rows) > 1 else []


@millstream.process
class Matcher:
    """Emits every pair of a left and a right row with the same key."""

    lefts: ListState[int]
    rights: ListState[str]

    @millstream.input
    def left(self, _key: None, row: Number, out: Collector["Match"]) -> None:
        self.lefts.add(row.n)
        for text in self.rights.get():
            out.emit(Match(row.n, text))

    @millstream.input
    def right(self, _key: None, row: Text, out: Collector["Match"]) -> None:
        self.rights.add(row.text)
        for n in self.lefts.get():
            out.emit(Match(n, row.text))


@dataclass
class Match:
    """A left and a right row of the same key."""

    n: int
    text: str


@millstream.map
def failing(row: Number) -> Doubled:
    """Fails at a negative number, with an exception of the language."""
    return Doubled(_root(row.n))


def _root(n: int) -> int:
    if n < 0:
        raise ValueError(f"no root of {n}")
    return math.isqrt(n)
