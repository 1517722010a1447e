"""Functions of every kind under the test harness, and what of them is refused with which words."""

import json
import sys
import unittest
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Iterator

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import millstream
from millstream import Collector, Columns, Context, DeclarationError, Int32, Reject, Timer, ValueState, Window, parameter, testing
from millstream import _columns, decorators, module
from millstream.values import ColumnSpec, column_type


@dataclass
class Number:
    n: int


@dataclass
class Doubled:
    doubled: int


@millstream.map
def doubled(row: Number) -> Doubled:
    """Twice the number."""
    return Doubled(row.n * 2)


@millstream.map
def repeated(row: Number) -> Iterator[Doubled]:
    for _ in range(row.n):
        if row.n > 3:
            raise Reject("too many")
        yield Doubled(row.n)


@millstream.map
def in_columns(rows: Columns[Number]) -> Columns[Doubled]:
    positive = [at for at, n in enumerate(rows.n) if n > 0]
    return Columns(doubled=[rows.n[at] * 2 for at in positive], picked=positive)


@millstream.map
def wrong_type(row: Number) -> Doubled:
    return Doubled("x" if row.n == 2 else row.n)  # type: ignore[arg-type]


class MapTest(unittest.TestCase):
    def test_one_row_each_needs_no_positions(self) -> None:
        results = testing.map(doubled).run([Number(1), Number(-4)])
        self.assertEqual(results.rows, [Doubled(2), Doubled(-8)])
        self.assertEqual(results.origins, [0, 1])

    def test_a_row_that_is_refused_midway_emits_nothing(self) -> None:
        results = testing.map(repeated).run([Number(2), Number(4), Number(0)])
        self.assertEqual(results.origins, [0, 0])
        self.assertEqual(results.rejected, [(1, "too many")])

    def test_columns_go_in_and_come_out(self) -> None:
        results = testing.map(in_columns).run([Number(1), Number(-1), Number(3)])
        self.assertEqual((results.rows, results.origins), ([Doubled(2), Doubled(6)], [0, 2]))

    def test_a_value_of_another_type_is_named_with_its_row(self) -> None:
        with self.assertRaisesRegex(_columns.MismatchError, "column `doubled`, row 1: expected int of 64 bits, found 'x'"):
            testing.map(wrong_type).run([Number(1), Number(2)])

    def test_an_empty_batch_is_an_empty_outcome(self) -> None:
        self.assertEqual(testing.map(doubled).run([]).rows, [])


class ColumnTest(unittest.TestCase):
    def round_trip(self, annotation: Any, values: list[Any]) -> None:
        kind = column_type(annotation)
        assert kind is not None
        spec = ColumnSpec("x", *kind)
        column = _columns.encode(values, spec)
        self.assertEqual(_columns.decode(column, spec, len(values)), values)

    def test_every_type_comes_back_with_nulls_and_extremes(self) -> None:
        for annotation, values in [
            (bool, [True, False] * 9),
            (Int32, [-(2**31), 2**31 - 1]),
            (int, [-(2**63), 2**63 - 1]),
            (float, [1e300, -0.0, float("inf")]),
            (str, ["", "Zürich 🌊", "\0"]),
            (bytes, [b"", b"\0\xff"]),
            (datetime, [datetime(1, 1, 1, tzinfo=timezone.utc), datetime(2024, 6, 1, 12, 0, 0, 7000, timezone.utc)]),
            (date, [date(1, 1, 1), date(9999, 12, 31)]),
        ]:
            self.round_trip(annotation, values)
            self.round_trip(annotation | None if annotation is not Int32 else Int32 | None, [None, *values, None])

    def test_what_is_out_of_range_is_refused(self) -> None:
        for annotation, value in [(int, 2**63), (Int32, 2**31), (str, b"x"), (bytes, "x"), (bool, 1), (int, None)]:
            kind = column_type(annotation)
            assert kind is not None
            with self.assertRaisesRegex(_columns.MismatchError, "column `x`, row 0"):
                _columns.encode([value], ColumnSpec("x", *kind))
        with self.assertRaisesRegex(_columns.MismatchError, "time zone"):
            _columns.encode([datetime(2024, 1, 1)], ColumnSpec("x", *column_type(datetime)))  # type: ignore[misc]

    def test_bits_are_least_significant_first(self) -> None:
        self.assertEqual(_columns.pack_bits([True, False, False, False, False, False, False, False, True]), b"\x01\x01")
        self.assertEqual(_columns.unpack_bits(b"\x05", 3), [True, False, True])


@millstream.process
class Counted:
    """Counts."""

    counts: ValueState[int]
    limit: int = parameter(3, "Where it stops.")

    def process(self, key: str, row: Number) -> Doubled | None:
        count = self.counts.get(0) + 1
        self.counts.set(count)
        return Doubled(count) if count <= self.limit else None


class ProcessTest(unittest.TestCase):
    def test_state_is_read_and_written_once_a_call(self) -> None:
        test = testing.process(Counted).parameter("limit", 2)
        results = test.rows([("a", Number(0)), ("b", Number(0)), ("a", Number(0)), ("a", Number(0))])
        self.assertEqual(results.rows, [Doubled(1), Doubled(1), Doubled(2)])
        self.assertEqual(testing.HOST.calls, 2)
        self.assertEqual(test.rows([("b", Number(0))]).rows, [Doubled(2)])

    def test_a_wrong_parameter_does_not_open(self) -> None:
        with self.assertRaisesRegex(Exception, "parameter `limit`: found `x`, expected int64"):
            testing.process(Counted).parameter("limit", "x").rows([])


@dataclass
class Celsius:
    degrees: float


@millstream.state(version=2)
@dataclass
class Kelvin:
    kelvin: float


@millstream.migrate(version=1)
def kelvin(stored: Celsius) -> Kelvin:
    return Kelvin(stored.degrees + 273.15)


@millstream.process
class Warmest:
    warmest: ValueState[Kelvin]

    def process(self, key: str, row: Number) -> None:
        self.warmest.set(Kelvin(float(row.n)))


class MigrationTest(unittest.TestCase):
    def test_stored_values_are_taken_over(self) -> None:
        of = decorators.declaration(Warmest)
        state = of.describe()["states"][0]
        self.assertEqual((state["version"], state["migrates-from"]), (2, [1]))
        from millstream.rows import schema

        cells = schema(Celsius).batch_of_present([Celsius(1.0), None])
        made = module.migrate(of, "warmest", 1, cells)
        self.assertEqual(schema(Kelvin).read_present(made.values, [True, False]), [Kelvin(274.15), None])


class DeclarationTest(unittest.TestCase):
    def refused(self, declare: Any, words: str) -> None:
        before = list(decorators.REGISTRY)
        try:
            with self.assertRaisesRegex(DeclarationError, words):
                decorators.declaration(declare()).describe()
        finally:
            decorators.REGISTRY[:] = before

    def test_what_makes_no_manifest_is_refused_with_what_was_expected(self) -> None:
        def no_annotation() -> Any:
            @millstream.map
            def f(row) -> bool:  # type: ignore[no-untyped-def]
                return True

            return f

        def no_row() -> Any:
            @millstream.map
            def f(row: list) -> bool:  # type: ignore[type-arg]
                return True

            return f

        def keyed_in_map() -> Any:
            @millstream.map
            class F:
                last: ValueState[int]

                def map(self, row: Number) -> bool:
                    return True

            return F

        def no_return() -> Any:
            @millstream.map
            def f(row: Number):  # type: ignore[no-untyped-def]
                return Doubled(row.n)

            return f

        def no_return_of_a_method() -> Any:
            @millstream.process
            class F:
                def process(self, key: str, row: Number) -> None:
                    pass

                def on_timer(self, key: str, timer: Timer):  # type: ignore[no-untyped-def]
                    return Doubled(1)

            return F

        def no_return_of_finish() -> Any:
            @millstream.aggregate
            class F:
                def add(self, sum: Doubled, row: Number):  # type: ignore[no-untyped-def]
                    sum.doubled += row.n

                def finish(self, sum: Doubled):  # type: ignore[no-untyped-def]
                    return sum

            return F

        def no_return_of_apply() -> Any:
            @millstream.window
            def f(key: None, window: Window, rows: list[Number]):  # type: ignore[no-untyped-def]
                return Doubled(1)

            return f

        self.refused(no_return, "`f` has no annotation of what it returns, of which its output is made: expected `-> Row`")
        self.refused(no_return, r"`-> Iterator\[Row\]` or `-> bool`, or `-> None` for a function that returns nothing")
        self.refused(no_return_of_a_method, "`F.on_timer` has no annotation of what it returns")
        self.refused(no_return_of_finish, "`F.finish` has no annotation of what it returns")
        self.refused(no_return_of_apply, "`f` has no annotation of what it returns")
        self.refused(no_annotation, "`f`: the argument `row` has no annotation")
        self.refused(no_row, "`list` is no row: expected a dataclass or one of bool")
        self.refused(keyed_in_map, "state `last` of `f` is kept by key, and a map function has none")

    def test_what_is_returned_against_the_annotation_is_refused(self) -> None:
        @millstream.map(name="silent")
        def f(row: Number) -> None:
            return Doubled(row.n)  # type: ignore[return-value]

        with self.assertRaisesRegex(_columns.MismatchError, r"returned Doubled\(doubled=1\), .* `-> None`"):
            testing.map(f).run([Number(1)])
        decorators.REGISTRY.remove(decorators.declaration(f))

    def test_the_manifest_is_json_of_what_stands_in_the_source(self) -> None:
        text = module.describe("example", "1", "")
        functions = {each["name"]: each for each in json.loads(text)["functions"]}
        counted = functions["counted"]
        self.assertEqual(counted["doc"], "Counts.")
        self.assertEqual(
            counted["parameters"], [{"name": "limit", "type": "int64", "doc": "Where it stops.", "default": "3"}]
        )
        self.assertEqual(counted["key"], [{"name": "key", "type": "utf8", "nullable": False}])
        self.assertEqual(counted["inputs"][0]["distribution"], "keyed")
        self.assertEqual(counted["outputs"][0]["carry"], "replace")
        self.assertEqual(functions["doubled"]["outputs"][0]["carry"], "extend")


if __name__ == "__main__":
    unittest.main()
