//! The parts, one file a subject.

mod boundary;
mod exchange;
mod keyed;
mod windows;

/// A piece of work of known size.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, in tables and in `costs.toml`.
    pub name: &'static str,
    /// What costs are given for one of: `row`, `call`, `instance`.
    pub unit: &'static str,
    /// How many of these a step is.
    pub units: u64,
    prepare: fn() -> Box<dyn Work>,
}

/// A part that has been set up.
pub trait Work {
    /// Does as many steps; every one costs the same once the first few have been done.
    fn run(&mut self, steps: u64);
}

impl Part {
    /// Sets it up: what this costs is no part of it.
    pub fn prepare(&self) -> Box<dyn Work> {
        (self.prepare)()
    }

    /// The same part set up in another way.
    #[cfg(test)]
    pub(crate) fn prepared_by(self, prepare: fn() -> Box<dyn Work>) -> Self {
        Self { prepare, ..self }
    }
}

/// All of them.
pub const PARTS: [Part; 10] = [
    Part { name: "guest call", unit: "call", units: 1, prepare: boundary::call },
    Part { name: "columns of numbers", unit: "row", units: ROWS as u64, prepare: boundary::numbers },
    Part { name: "columns of text", unit: "row", units: ROWS as u64, prepare: boundary::text },
    Part { name: "instance", unit: "instance", units: 1, prepare: boundary::instance },
    Part { name: "hash exchange to 2", unit: "row", units: ROWS as u64, prepare: exchange::to_two },
    Part { name: "hash exchange to 16", unit: "row", units: ROWS as u64, prepare: exchange::to_sixteen },
    Part { name: "keyed state", unit: "row", units: ROWS as u64, prepare: keyed::value_state },
    Part { name: "process with a timer", unit: "row", units: ROWS as u64, prepare: keyed::timers },
    Part { name: "window add", unit: "row", units: ROWS as u64, prepare: windows::add },
    Part { name: "window add and fire", unit: "row", units: ROWS as u64, prepare: windows::add_and_fire },
];

/// Rows of a batch.
const ROWS: usize = millstream_types::Limits::BATCH_ROWS;
