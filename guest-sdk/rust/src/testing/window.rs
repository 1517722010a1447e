//! Tests of window functions.

use super::rows::{Given, Keys, batch};
use super::{Results, Setup};
use crate::function::{Function, Opened, WindowCall};
use crate::time::Window;

/// A window function under test.
pub struct WindowTest {
    pub(super) setup: Setup,
    window: Window,
}

/// Starts a test of a window function.
pub fn window<F: Function>() -> WindowTest {
    WindowTest { setup: Setup::new::<F>(), window: Window { start: 0, end: 1 } }
}

impl WindowTest {
    /// Sets a parameter, before the first rows.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.setup.parameter(name, value);
        self
    }

    /// Sets the window that the function sees.
    pub fn window(mut self, start: i64, end: i64) -> Self {
        self.window = Window { start, end };
        self
    }

    /// Gives the function one window for each key, in the order of the keys' first rows.
    pub fn run<K: Given, T: Given>(&mut self, rows: impl IntoIterator<Item = (K, T)>) -> Results {
        let spec = &self.setup.spec;
        let mut results = Results::new(spec);
        let (keys, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let keys = Keys::of(keys, &spec.key);
        let mut by_key: Vec<_> = keys.of_row.iter().zip(rows).collect();
        by_key.sort_by_key(|(key, _)| **key);
        let windows = keys.rows.len();
        let end = |key: u32| by_key.iter().take_while(|(of, _)| **of < key).count() as u32;
        let offsets = (0..=windows as u32).map(end).collect();
        let rows = by_key.into_iter().map(|(_, row)| row).collect();
        let call = WindowCall {
            rows: batch(rows, &spec.inputs[0].columns, "input"),
            times: None,
            offsets,
            keys: keys.batch(&spec.key),
            key_of_window: (0..windows as u32).collect(),
            windows: vec![self.window; windows],
        };
        match self.setup.opened() {
            Opened::Window(function) => match function.apply(call) {
                Ok(outcome) => results.add(outcome),
                Err(error) => panic!("the call was refused: {error}"),
            },
            other => panic!("expected a window function, found a {} function", other.kind()),
        }
        results
    }
}
