//! The imports of the component.

use super::{Cells, Entries, Runs};
use crate::column::{Batch, VarValues};
use crate::component::bindings::millstream::function::{context, operator_state, state, timers};
use crate::component::convert::{
    batch_in, batch_out, cells_in, cells_out, clock_out, runs_out, var_in, var_out,
};
use crate::context::{Level, TaskInfo};
use crate::time::Clock;

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Trace => context::Level::Trace,
        Level::Debug => context::Level::Debug,
        Level::Info => context::Level::Info,
        Level::Warn => context::Level::Warn,
        Level::Error => context::Level::Error,
    };
    context::log(level, message);
}

pub(crate) fn panicked(message: &str) {
    context::panicked(message);
}

pub(crate) fn parameter(name: &str) -> Option<String> {
    context::parameter(name)
}

pub(crate) fn count(metric: &str, by: u64) {
    context::count(metric, by);
}

pub(crate) fn gauge(metric: &str, value: f64) {
    context::gauge(metric, value);
}

pub(crate) fn task() -> TaskInfo {
    let context::TaskInfo { job, operator, subtask, parallelism, attempt } = context::task();
    TaskInfo { job, operator, subtask, parallelism, attempt }
}

pub(crate) fn now() -> i64 {
    context::now()
}

pub(crate) fn random() -> u64 {
    context::random()
}

pub(crate) fn set_timers(clock: Clock, keys: &[u32], times: &[i64]) {
    timers::set(clock_out(clock), keys, times);
}

pub(crate) fn clear_timers(clock: Clock, keys: &[u32], times: &[i64]) {
    timers::clear(clock_out(clock), keys, times);
}

/// A value state of the host.
pub(crate) struct ValueHandle(state::ValueState);

impl ValueHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        state::ValueState::open(name).map(Self)
    }

    pub(crate) fn read(&self, keys: &[u32]) -> Cells {
        cells_in(self.0.read(keys))
    }

    pub(crate) fn write(&self, keys: &[u32], cells: Cells) {
        self.0.write(keys, &cells_out(cells));
    }
}

/// A list state of the host.
pub(crate) struct ListHandle(state::ListState);

impl ListHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        state::ListState::open(name).map(Self)
    }

    pub(crate) fn read(&self, keys: &[u32]) -> Runs {
        let state::Runs { offsets, items } = self.0.read(keys);
        Runs { offsets, items: batch_in(items) }
    }

    pub(crate) fn append(&self, keys: &[u32], items: Runs) {
        self.0.append(keys, &runs_out(items));
    }

    pub(crate) fn clear(&self, keys: &[u32]) {
        self.0.clear(keys);
    }
}

/// A map state of the host.
pub(crate) struct MapHandle(state::MapState);

impl MapHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        state::MapState::open(name).map(Self)
    }

    pub(crate) fn read(&self, keys: &[u32], map_keys: VarValues) -> Cells {
        cells_in(self.0.read(keys, &var_out(map_keys)))
    }

    pub(crate) fn write(&self, keys: &[u32], map_keys: VarValues, cells: Cells) {
        self.0.write(keys, &var_out(map_keys), &cells_out(cells));
    }

    pub(crate) fn scan(&self, keys: &[u32], start: Option<&[u8]>, limit: u32) -> Entries {
        let state::Entries { offsets, map_keys, values } = self.0.scan(keys, start, limit);
        Entries { offsets, map_keys: var_in(map_keys), values: batch_in(values) }
    }

    pub(crate) fn clear(&self, keys: &[u32]) {
        self.0.clear(keys);
    }
}

/// An operator state of the host.
pub(crate) struct OperatorHandle(operator_state::Items);

impl OperatorHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        operator_state::Items::open(name).map(Self)
    }

    pub(crate) fn read(&self) -> Batch {
        batch_in(self.0.read())
    }

    pub(crate) fn replace(&self, items: Batch) {
        self.0.replace(&batch_out(items));
    }
}
