//! Work, memory, stack and log without end.

use std::hint::black_box;

use millstream::{Function, info};

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
