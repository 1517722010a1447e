//! Work, memory, stack and log without end, or with an end that is far.

use std::hint::black_box;

use millstream::{Collector, Function, Output, ValueState, info};

use crate::panics::Number;

/// Loops for ever.
#[millstream::map]
pub fn loops(number: Number) {
    let mut n = number.n;
    loop {
        n = black_box(n).wrapping_add(1);
    }
}

/// Allocates a MiB at a time and keeps it.
#[millstream::map]
pub fn allocates(number: Number) {
    let mut kept = Vec::new();
    loop {
        kept.push(vec![number.n as u8; 1 << 20]);
        black_box(&kept);
    }
}

/// Calls itself.
#[derive(Function)]
pub struct Recursor {}

/// Recurses without end.
#[millstream::process(name = "recurses")]
impl Recursor {
    fn process(&mut self, _key: (), number: Number) {
        black_box(recurse(number.n));
    }
}

#[expect(unconditional_recursion, reason = "it is the point")]
fn recurse(n: i64) -> i64 {
    black_box(n) + recurse(black_box(n + 1))
}

/// Logs 64 KiB a line, for ever.
#[millstream::map]
pub fn floods_the_log(number: Number) {
    let line = "log ".repeat(1 << 14);
    loop {
        info!("{} {line}", number.n);
    }
}

/// Counts rows by key, and takes its time over each.
#[derive(Function)]
pub struct Dawdler {
    count: ValueState<i64>,
}

/// So many rows of a key have been counted.
#[derive(Output)]
pub struct Counted {
    /// The key.
    pub key: i64,
    /// A multiple of ten.
    pub rows: i64,
}

/// Says of every tenth row of a key how many there have been.
#[millstream::process(name = "dawdles")]
impl Dawdler {
    fn process(&mut self, key: i64, number: Number, out: &mut Collector<Counted>) {
        let mut n = number.n | 1;
        for _ in 0..DAWDLE {
            n ^= n << 13;
            n ^= n >> 7;
            n ^= n << 17;
        }
        black_box(n);
        let rows = self.count.get().map_or(1, |rows| rows + 1);
        self.count.set(rows);
        if rows % 10 == 0 {
            out.emit(Counted { key, rows });
        }
    }
}

/// Rounds over a row, ten microseconds or more.
const DAWDLE: u32 = 6_000;
