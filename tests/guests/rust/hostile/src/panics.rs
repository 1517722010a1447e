//! Panics, at every moment at which user code runs.

use millstream::{Collector, Function, Input, Output, Parameters, ProcessContext, Timer, ValueState};

/// A number.
#[derive(Input)]
pub struct Number {
    /// It.
    pub n: i64,
}

/// A parameter that does not open.
pub struct Explosive;

impl Parameters for Explosive {
    fn specs() -> Vec<millstream::manifest::ParameterSpec> {
        Vec::new()
    }

    fn read() -> Result<Self, String> {
        panic!("panicked while opening")
    }
}

/// Panics when it opens.
#[millstream::map]
pub fn panics_on_open(_number: Number, _explosive: &Explosive) {}

/// Panics at the first row.
#[millstream::map]
pub fn panics_on_row(number: Number) {
    panic!("panicked at row {}", number.n);
}

/// Panics at every number that 100 divides; all others pass.
#[millstream::map]
pub fn poison(number: Number) {
    assert!(number.n % 100 != 0, "the number {} is poison", number.n);
}

/// Refuses to open.
#[derive(Function)]
pub struct OpenPanics {
    count: ValueState<i64>,
}

/// Panics when it opens, with state.
#[millstream::process(name = "process_panics_on_open")]
impl OpenPanics {
    fn open(&mut self) {
        panic!("panicked while opening a process function");
    }

    fn process(&mut self, _key: (), number: Number) {
        self.count.set(number.n);
    }
}

/// What was counted.
#[derive(Output)]
pub struct Count {
    count: i64,
}

/// Panics at its timer.
#[derive(Function)]
pub struct TimerPanics {
    count: ValueState<i64>,
}

/// Counts, and panics when its timer fires.
#[millstream::process(name = "panics_on_timer")]
impl TimerPanics {
    fn process(&mut self, _key: (), number: Number, ctx: &mut ProcessContext, out: &mut Collector<Count>) {
        let count = self.count.get_or_insert_with(|| 0);
        *count += 1;
        out.emit(Count { count: *count });
        ctx.set_timer(number.n);
    }

    fn on_timer(&mut self, _key: (), timer: Timer) {
        panic!("panicked at the timer of {}", timer.time);
    }
}
