//! Tests of process functions: rows by key, a watermark that moves, timers that fire.

use std::collections::BTreeMap;

use super::rows::{Given, Keys, batch};
use super::{Results, Setup};
use crate::EventTime;
use crate::column::Batch;
use crate::function::{Call, Function, KeyedCall, Opened, Outcome, ProcessFunction, TimerCall};
use crate::host::native;
use crate::host::native::KeyBytes;
use crate::host::native::rows::{StoredRow, join};
use crate::time::Clock;

/// A process function under test. State, timers and watermark stay from call to call.
pub struct ProcessTest {
    setup: Setup,
    keys: BTreeMap<KeyBytes, StoredRow>,
    watermark: i64,
    batch: usize,
}

/// Starts a test of a process function.
pub fn process<F: Function>() -> ProcessTest {
    ProcessTest { setup: Setup::new::<F>(), keys: BTreeMap::new(), watermark: i64::MIN, batch: usize::MAX }
}

impl ProcessTest {
    /// Sets a parameter, before the first rows.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.setup.parameter(name, value);
        self
    }

    /// Gives rows in calls of at most so many: results must not depend on it.
    pub fn batches_of(mut self, rows: usize) -> Self {
        self.batch = rows.max(1);
        self
    }

    /// Gives rows, each with its key, to the first input.
    pub fn rows<K: Given, T: Given>(&mut self, rows: impl IntoIterator<Item = (K, T)>) -> Results {
        self.feed(0, rows.into_iter().map(|(key, row)| (key, EventTime::NONE, row)).collect())
    }

    /// Gives rows, each with its key and event time, to the first input.
    pub fn rows_at<K: Given, T: Given>(&mut self, rows: impl IntoIterator<Item = (K, i64, T)>) -> Results {
        self.feed(0, rows.into_iter().map(|(key, time, row)| (key, EventTime::from_raw(time), row)).collect())
    }

    /// Gives rows, each with its key, to the input of this name.
    pub fn rows_on<K: Given, T: Given>(
        &mut self,
        input: &str,
        rows: impl IntoIterator<Item = (K, T)>,
    ) -> Results {
        let port = self.setup.spec.inputs.iter().position(|port| port.name == input);
        let Some(port) = port else { panic!("function `{}` has no input `{input}`", self.setup.spec.name) };
        self.feed(port, rows.into_iter().map(|(key, row)| (key, EventTime::NONE, row)).collect())
    }

    /// Moves the watermark on: due event timers fire, round by round.
    pub fn watermark(&mut self, to: i64) -> Results {
        // Before they fire, as in a job: the function sees the watermark that made its timers due.
        self.watermark = self.watermark.max(to);
        self.fire(Clock::Event, to)
    }

    /// Moves the host's clock on: due processing timers fire, round by round.
    pub fn processing_time(&mut self, to: i64) -> Results {
        native::with(|host| host.now = to);
        self.fire(Clock::Processing, to)
    }

    /// Ends the input: all event timers fire, and the function's hook is called.
    pub fn end_of_input(&mut self) -> Results {
        let mut results = self.watermark(i64::MAX);
        self.hook(&mut results, |function| function.end_of_input());
        results
    }

    /// Calls the function's hook before a barrier.
    pub fn before_barrier(&mut self) -> Results {
        let mut results = Results::new(&self.setup.spec);
        self.hook(&mut results, |function| function.before_barrier());
        results
    }

    fn feed<K: Given, T: Given>(&mut self, port: usize, rows: Vec<(K, EventTime, T)>) -> Results {
        let mut results = Results::new(&self.setup.spec);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let call = rows.by_ref().take(self.batch).collect();
            self.call(port, call, &mut results);
        }
        // A timer that the watermark has passed already fires with the next round.
        if self.watermark > i64::MIN {
            let due = self.fire(Clock::Event, self.watermark);
            results.append(due);
        }
        results
    }

    fn call<K: Given, T: Given>(&mut self, port: usize, rows: Vec<(K, EventTime, T)>, results: &mut Results) {
        let spec = &self.setup.spec;
        let input = &spec.inputs[port];
        let (mut keys, mut times, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (key, time, row) in rows {
            keys.push(key);
            times.push(time.raw());
            values.push(row);
        }
        let keys = Keys::of(keys, &spec.key);
        let call = KeyedCall {
            port: port as u32,
            rows: batch(values, &input.columns, &input.name),
            times: input.times.then_some(times),
            keys: keys.batch(&spec.key),
            key_of_row: keys.of_row.clone(),
            watermark: self.watermark,
        };
        self.keys.extend(keys.bytes.iter().cloned().zip(keys.rows));
        native::with(|host| host.keys = keys.bytes);
        results.add(self.run(|function| function.process(call)));
    }

    fn fire(&mut self, clock: Clock, to: i64) -> Results {
        let mut results = Results::new(&self.setup.spec);
        loop {
            let round = native::with(|host| take_round(&mut host.timers, clock, to));
            if round.is_empty() {
                return results;
            }
            let (keys, times): (Vec<_>, Vec<_>) = round.into_iter().unzip();
            let call = TimerCall { clock, keys: self.key_batch(&keys), times, watermark: self.watermark };
            native::with(|host| host.keys = keys);
            results.add(self.run(|function| function.on_timer(call)));
        }
    }

    fn key_batch(&self, keys: &[KeyBytes]) -> Batch {
        let rows: Vec<_> = keys.iter().map(|key| self.keys.get(key)).collect();
        join(&self.setup.spec.key, &rows)
    }

    fn hook(&mut self, results: &mut Results, hook: impl FnOnce(&mut dyn ProcessFunction) -> Call) {
        native::with(|host| host.keys.clear());
        results.add(self.run(hook));
    }

    fn run(&mut self, call: impl FnOnce(&mut dyn ProcessFunction) -> Call) -> Outcome {
        match self.setup.opened() {
            Opened::Process(function) => match call(function.as_mut()) {
                Ok(outcome) => outcome,
                Err(error) => panic!("the call was refused: {error}"),
            },
            other => panic!("expected a process function, found a {} function", other.kind()),
        }
    }
}

/// The earliest due timer of each key.
fn take_round(
    timers: &mut std::collections::BTreeSet<(Clock, i64, KeyBytes)>,
    clock: Clock,
    to: i64,
) -> Vec<(KeyBytes, i64)> {
    let mut round: BTreeMap<KeyBytes, i64> = BTreeMap::new();
    for (_, time, key) in timers.iter().filter(|(of, time, _)| *of == clock && *time <= to) {
        round.entry(key.clone()).or_insert(*time);
    }
    for (key, time) in &round {
        timers.remove(&(clock, *time, key.clone()));
    }
    round.into_iter().collect()
}
