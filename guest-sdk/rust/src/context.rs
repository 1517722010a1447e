//! What the host offers every function: log, metrics, time, chance, and who it is.

use std::cell::{Cell, RefCell};
use std::fmt;

use crate::host;

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For following single rows.
    Trace,
    /// For finding faults.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is wrong, and handled.
    Warn,
    /// Something is wrong.
    Error,
}

/// The subtask that the function runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Name of the job.
    pub job: String,
    /// Id of the operator.
    pub operator: String,
    /// Position of the subtask in its operator.
    pub subtask: u32,
    /// Subtasks of the operator.
    pub parallelism: u32,
    /// Goes up with every restart.
    pub attempt: u32,
}

/// The host, as a function sees it during one call. Take it as an argument: `ctx: &Context`.
///
/// Counters and gauges are gathered and handed over once, when the call ends; `now` and `random` ask the host
/// once a call. So all of it may be used for every row.
#[derive(Debug, Default)]
pub struct Context {
    counts: RefCell<Vec<(String, u64)>>,
    gauges: RefCell<Vec<(String, f64)>>,
    now: Cell<Option<i64>>,
    seed: Cell<Option<u64>>,
}

impl Context {
    /// Writes a line to the job's log. [`info!`](crate::info) and its sisters format and need no context.
    pub fn log(&self, level: Level, message: &str) {
        host::log(level, message);
    }

    /// Adds to a counter of this operator.
    pub fn count(&self, metric: &str, by: u64) {
        let mut counts = self.counts.borrow_mut();
        match counts.iter_mut().find(|(name, _)| name == metric) {
            Some((_, count)) => *count += by,
            None => counts.push((metric.to_owned(), by)),
        }
    }

    /// Sets a gauge of this operator; the last value of a call is the one that is seen.
    pub fn gauge(&self, metric: &str, value: f64) {
        let mut gauges = self.gauges.borrow_mut();
        match gauges.iter_mut().find(|(name, _)| name == metric) {
            Some((_, gauge)) => *gauge = value,
            None => gauges.push((metric.to_owned(), value)),
        }
    }

    /// Text of a parameter from the job file. `#[derive(Parameters)]` gives typed and checked ones.
    pub fn parameter(&self, name: &str) -> Option<String> {
        host::parameter(name)
    }

    /// Who this is.
    pub fn task(&self) -> TaskInfo {
        host::task()
    }

    /// Processing time, milliseconds since the epoch: fixed within a call, and the same in a replay.
    pub fn now(&self) -> i64 {
        self.now.get().unwrap_or_else(|| {
            let now = host::now();
            self.now.set(Some(now));
            now
        })
    }

    /// A random number, the same in a replay: splitmix64 from the call's seed.
    pub fn random(&self) -> u64 {
        let state = self.seed.get().unwrap_or_else(host::random).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.seed.set(Some(state));
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Starts a call: time and chance are asked for anew.
    #[doc(hidden)]
    pub fn begin(&mut self) {
        self.now.set(None);
        self.seed.set(None);
    }

    /// Ends a call: hands the metrics over.
    #[doc(hidden)]
    pub fn flush(&mut self) {
        self.counts.get_mut().drain(..).for_each(|(metric, by)| host::count(&metric, by));
        self.gauges.get_mut().drain(..).for_each(|(metric, value)| host::gauge(&metric, value));
    }
}

/// Formats and logs; what the log macros call.
#[doc(hidden)]
pub fn log(level: Level, message: fmt::Arguments<'_>) {
    match message.as_str() {
        Some(text) => host::log(level, text),
        None => host::log(level, &message.to_string()),
    }
}

/// Logs a line of this level: `log!(Level::Info, "{n} rows")`.
#[macro_export]
macro_rules! log {
    ($level:expr, $($message:tt)+) => { $crate::__private::log($level, ::std::format_args!($($message)+)) };
}

/// Logs for following single rows.
#[macro_export]
macro_rules! trace {
    ($($message:tt)+) => { $crate::log!($crate::Level::Trace, $($message)+) };
}

/// Logs for finding faults.
#[macro_export]
macro_rules! debug {
    ($($message:tt)+) => { $crate::log!($crate::Level::Debug, $($message)+) };
}

/// Logs what is worth knowing.
#[macro_export]
macro_rules! info {
    ($($message:tt)+) => { $crate::log!($crate::Level::Info, $($message)+) };
}

/// Logs what is wrong, and handled.
#[macro_export]
macro_rules! warn {
    ($($message:tt)+) => { $crate::log!($crate::Level::Warn, $($message)+) };
}

/// Logs what is wrong.
#[macro_export]
macro_rules! error {
    ($($message:tt)+) => { $crate::log!($crate::Level::Error, $($message)+) };
}
