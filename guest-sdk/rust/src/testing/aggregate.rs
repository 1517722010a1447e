//! Tests of aggregate functions.

use super::rows::{Given, Keys, batch};
use super::{Results, Setup};
use crate::EventTime;
use crate::column::Batch;
use crate::function::{AccumulateCall, AggregateFunction, Call, FinishCall, Function, Opened};
use crate::host::Cells;
use crate::host::native::rows::join;
use crate::time::Window;

/// An aggregate function under test.
pub struct AggregateTest {
    pub(super) setup: Setup,
    window: Window,
    parts: usize,
}

/// Starts a test of an aggregate function.
pub fn aggregate<F: Function>() -> AggregateTest {
    AggregateTest { setup: Setup::new::<F>(), window: Window { start: 0, end: 1 }, parts: 1 }
}

impl AggregateTest {
    /// Sets a parameter, before the first rows.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.setup.parameter(name, value);
        self
    }

    /// Sets the window that `finish` sees.
    pub fn window(mut self, start: i64, end: i64) -> Self {
        self.window = Window { start, end };
        self
    }

    /// Deals the rows out to so many accumulators a key and merges them: results must not depend on it.
    pub fn merged_from(mut self, parts: usize) -> Self {
        self.parts = parts.max(1);
        self
    }

    /// Aggregates rows by key and finishes each key, in the order of its first row.
    pub fn run<K: Given, T: Given>(&mut self, rows: impl IntoIterator<Item = (K, T)>) -> Results {
        self.run_at(rows.into_iter().map(|(key, row)| (key, EventTime::NONE.raw(), row)))
    }

    /// The same with event times.
    pub fn run_at<K: Given, T: Given>(&mut self, rows: impl IntoIterator<Item = (K, i64, T)>) -> Results {
        let mut results = Results::new(&self.setup.spec);
        let (mut keys, mut parts) = (Vec::new(), Vec::new());
        parts.resize_with(self.parts, Part::default);
        for (at, (key, time, row)) in rows.into_iter().enumerate() {
            keys.push(key);
            parts[at % self.parts].add(at, time, row);
        }
        let keys = Keys::of(keys, &self.setup.spec.key);
        let accumulators = self.accumulators(parts, &keys, &mut results);
        let call = FinishCall {
            key_of_group: (0..accumulators.rows as u32).collect(),
            windows: vec![self.window; accumulators.rows],
            keys: keys.batch(&self.setup.spec.key),
            accumulators,
        };
        results.add(self.call(|function| function.finish(call)));
        results
    }

    fn accumulators<T: Given>(&mut self, parts: Vec<Part<T>>, keys: &Keys, results: &mut Results) -> Batch {
        let merged = parts.into_iter().map(|part| self.accumulate(part, keys, results)).collect::<Vec<_>>();
        let merged =
            merged.into_iter().reduce(|into, other| self.call(|function| function.merge(into, other)));
        merged.unwrap_or_default()
    }

    fn accumulate<T: Given>(&mut self, part: Part<T>, keys: &Keys, results: &mut Results) -> Batch {
        let spec = &self.setup.spec;
        let columns = spec.accumulator.as_ref().map(|it| it.columns.as_slice()).unwrap_or_default();
        let groups = keys.rows.len();
        let input = &spec.inputs[0];
        let call = AccumulateCall {
            rows: batch(part.rows, &input.columns, "input"),
            times: input.times.then_some(part.times),
            group_of_row: part.positions.iter().map(|&at| keys.of_row[at]).collect(),
            accumulators: Cells {
                present: vec![0; groups.div_ceil(8)],
                values: join(columns, &vec![None; groups]),
            },
        };
        let accumulated = self.call(|function| function.accumulate(call));
        results.reject(accumulated.rejected, &part.positions);
        accumulated.accumulators
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn AggregateFunction) -> Call<T>) -> T {
        match self.setup.opened() {
            Opened::Aggregate(function) => match call(function.as_mut()) {
                Ok(value) => value,
                Err(error) => panic!("the call was refused: {error}"),
            },
            other => panic!("expected an aggregate function, found a {} function", other.kind()),
        }
    }
}

/// The rows of one of the accumulators that are merged.
struct Part<T> {
    positions: Vec<usize>,
    times: Vec<i64>,
    rows: Vec<T>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { positions: Vec::new(), times: Vec::new(), rows: Vec::new() }
    }
}

impl<T> Part<T> {
    fn add(&mut self, position: usize, time: i64, row: T) {
        self.positions.push(position);
        self.times.push(time);
        self.rows.push(row);
    }
}
