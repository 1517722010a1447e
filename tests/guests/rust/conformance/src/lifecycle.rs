//! Functions without keyed state that have a life besides their rows: each opens the state of its subtask, and emits from
//! its hooks.

use millstream::{Collector, Context, Function, OperatorState, Output, Timestamp, UnionState, Window, info};

use crate::{rows::Number, subtask::Total};

/// A number's position in its subtask.
#[derive(Output, Debug, PartialEq)]
pub struct Position {
    pub n: i64,
    pub position: i64,
}

/// Numbers rows.
#[derive(Function)]
pub struct Positions {
    last: OperatorState<i64>,
    steps: UnionState<i64>,
    #[parameter(default = 1)]
    step: i64,
}

/// Gives each row of a subtask the next number; the last one goes out before each barrier and at the end.
#[millstream::map(carry = "replace")]
impl Positions {
    fn open(&mut self) {
        if self.last.get().is_empty() {
            self.last.get_mut().push(0);
        }
        self.steps.get_mut().push(self.step);
    }

    fn map(&mut self, row: Number, ctx: &Context) -> Option<Position> {
        self.last.get_mut()[0] += self.step;
        ctx.count("numbered", 1);
        (row.n >= 0).then(|| Position { n: row.n, position: self.last.get()[0] })
    }

    fn before_barrier(&mut self, out: &mut Collector<Position>) {
        out.emit_at(Timestamp(1), Position { n: -1, position: self.last.get()[0] });
    }

    fn end_of_input(&mut self, out: &mut Collector<Position>) {
        out.emit_at(Timestamp(2), Position { n: -2, position: self.last.get()[0] });
        out.emit_at(Timestamp(3), Position { n: -3, position: self.steps.get().len() as i64 });
    }

    fn close(&mut self) {
        info!("closed at {}", self.last.get()[0]);
    }
}

/// Sums up.
#[derive(Function)]
pub struct Summed {
    opened: OperatorState<i64>,
    #[parameter(default = 10)]
    factor: i64,
}

/// The sum of a group, times the parameter; how often it has been opened goes out before each barrier and at the end.
#[millstream::aggregate(carry = "replace")]
impl Summed {
    fn open(&mut self) {
        self.opened.get_mut().push(self.factor);
    }

    fn accumulate(&self, sum: &mut i64, row: Number) {
        *sum += row.n;
    }

    fn merge(&self, into: &mut i64, other: i64) {
        *into += other;
    }

    fn finish(&self, sum: &i64) -> Total {
        Total { at: "window".to_owned(), total: sum * self.factor }
    }

    fn before_barrier(&mut self, out: &mut Collector<Total>) {
        out.emit_at(Timestamp(1), self.opened("barrier"));
    }

    fn end_of_input(&mut self, out: &mut Collector<Total>) {
        out.emit_at(Timestamp(2), self.opened("end"));
    }
}

impl Summed {
    fn opened(&self, at: &str) -> Total {
        Total { at: at.to_owned(), total: self.opened.get().len() as i64 }
    }
}

/// Remembers the longest window.
#[derive(Function)]
pub struct Longest {
    longest: OperatorState<i64>,
    #[parameter(default = 0)]
    least: i64,
}

/// The length of a window that has the least number of rows; the longest so far goes out before each barrier and at the
/// end.
#[millstream::window(carry = "replace")]
impl Longest {
    fn open(&mut self) {
        if self.longest.get().is_empty() {
            self.longest.get_mut().push(0);
        }
    }

    fn apply(&mut self, _key: (), _window: Window, rows: &[Number]) -> Option<Total> {
        let length = rows.len() as i64;
        let longest = &mut self.longest.get_mut()[0];
        *longest = length.max(*longest);
        (length >= self.least).then(|| Total { at: "window".to_owned(), total: length })
    }

    fn before_barrier(&mut self, out: &mut Collector<Total>) {
        out.emit_at(Timestamp(1), Total { at: "barrier".to_owned(), total: self.longest.get()[0] });
    }

    fn end_of_input(&mut self, out: &mut Collector<Total>) {
        out.emit_at(Timestamp(2), Total { at: "end".to_owned(), total: self.longest.get()[0] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    fn total(at: &str, total: i64) -> Total {
        Total { at: at.to_owned(), total }
    }

    #[test]
    fn a_map_function_has_state_parameters_and_hooks() {
        let mut test = testing::map::<Positions>().parameter("step", "2");
        let rows = test.run([5, -5, 6].map(|n| Number { n })).rows::<Position>();
        assert_eq!(rows, [Position { n: 5, position: 2 }, Position { n: 6, position: 6 }]);
        assert_eq!(test.before_barrier().rows::<Position>(), [Position { n: -1, position: 6 }]);
        test.run([Number { n: 7 }]);
        let end = [Position { n: -2, position: 8 }, Position { n: -3, position: 1 }];
        assert_eq!(test.end_of_input().rows::<Position>(), end);
        assert_eq!(testing::count("numbered"), 4);
    }

    #[test]
    fn an_aggregate_function_has_state_parameters_and_hooks() {
        let mut test = testing::aggregate::<Summed>().parameter("factor", "3");
        let rows = [1, 2].map(|n| ((), Number { n }));
        assert_eq!(test.run(rows).rows::<Total>(), [total("window", 9)]);
        assert_eq!(test.before_barrier().rows::<Total>(), [total("barrier", 1)]);
        assert_eq!(test.end_of_input().rows::<Total>(), [total("end", 1)]);
    }

    #[test]
    fn a_window_function_has_state_parameters_and_hooks() {
        let mut test = testing::window::<Longest>().parameter("least", "2");
        let rows = |count: i64| (0..count).map(|n| ((), Number { n })).collect::<Vec<_>>();
        assert_eq!(test.run(rows(1)).rows::<Total>(), []);
        assert_eq!(test.run(rows(3)).rows::<Total>(), [total("window", 3)]);
        test.run(rows(2));
        assert_eq!(test.before_barrier().rows::<Total>(), [total("barrier", 3)]);
        assert_eq!(test.end_of_input().rows::<Total>(), [total("end", 3)]);
    }
}
