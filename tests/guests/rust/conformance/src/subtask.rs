//! State of a subtask, and the moments besides the rows.

use millstream::{Collector, Function, OperatorState, Output, Timestamp};

use crate::rows::Number;

/// A total, and when it was emitted.
#[derive(Output, Debug, PartialEq)]
pub struct Total {
    pub at: String,
    pub total: i64,
}

/// Adds up all numbers of a subtask.
#[derive(Function)]
pub struct Totals {
    totals: OperatorState<i64>,
}

/// Emits the subtask's total before each barrier and at the end of input.
#[millstream::process]
impl Totals {
    fn open(&mut self) {
        if self.totals.get().is_empty() {
            self.totals.get_mut().push(0);
        }
    }

    fn process(&mut self, _key: (), row: Number) {
        self.totals.get_mut()[0] += row.n;
    }

    fn before_barrier(&mut self, out: &mut Collector<Total>) {
        self.emit("barrier", out);
    }

    fn end_of_input(&mut self, out: &mut Collector<Total>) {
        self.emit("end", out);
    }
}

impl Totals {
    fn emit(&self, at: &str, out: &mut Collector<Total>) {
        let total = self.totals.get().iter().sum();
        out.emit_at(Timestamp(0), Total { at: at.to_owned(), total });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn hooks_emit_what_was_added_up() {
        let mut test = testing::process::<Totals>();
        test.rows([("a", Number { n: 1 }), ("b", Number { n: 2 })]);
        let barrier = Total { at: "barrier".to_owned(), total: 3 };
        assert_eq!(test.before_barrier().rows::<Total>(), [barrier]);
        test.rows([("a", Number { n: 4 })]);
        assert_eq!(test.end_of_input().rows::<Total>(), [Total { at: "end".to_owned(), total: 7 }]);
    }
}
