//! Tests of map functions.

use super::rows::{Given, batch};
use super::{Results, Setup};
use crate::EventTime;
use crate::function::{Function, MapCall, Opened};

/// A map function under test.
pub struct MapTest {
    pub(super) setup: Setup,
}

/// Starts a test of a map function.
pub fn map<F: Function>() -> MapTest {
    MapTest { setup: Setup::new::<F>() }
}

impl MapTest {
    /// Sets a parameter, before the first rows.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.setup.parameter(name, value);
        self
    }

    /// Runs the function over rows without event times.
    pub fn run<T: Given>(&mut self, rows: impl IntoIterator<Item = T>) -> Results {
        self.call(rows.into_iter().map(|row| (EventTime::NONE, row)).collect())
    }

    /// Runs the function over rows with event times.
    pub fn run_at<T: Given>(&mut self, rows: impl IntoIterator<Item = (i64, T)>) -> Results {
        self.call(rows.into_iter().map(|(time, row)| (EventTime::from_raw(time), row)).collect())
    }

    fn call<T: Given>(&mut self, rows: Vec<(EventTime, T)>) -> Results {
        let mut results = Results::new(&self.setup.spec);
        let input = &self.setup.spec.inputs[0];
        let (times, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let times = input.times.then(|| times.into_iter().map(EventTime::raw).collect());
        let rows = batch(rows, &input.columns, "input");
        match self.setup.opened() {
            Opened::Map(function) => match function.apply(MapCall { rows, times }) {
                Ok(outcome) => results.add(outcome),
                Err(error) => panic!("the call was refused: {error}"),
            },
            other => panic!("expected a map function, found a {} function", other.kind()),
        }
        results
    }
}
