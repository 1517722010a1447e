//! What a window operator is made of.

use millstream_types::{Clock, Column, DataType, Field, Lifecycle, Limits};

use crate::{OutputSpec, ProjectionSpec, ReadColumn, RowErrorSpec};

/// A window operator with everything resolved.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// Which windows a row falls into.
    pub assigner: WindowAssigner,
    /// Whether windows are of event time or of processing time. Processing time knows no late rows, and what is open
    /// at the end of input is dropped and counted.
    pub clock: Clock,
    /// When windows fire.
    pub trigger: Trigger,
    /// Whether a window forgets its content when it fires.
    pub purging: bool,
    /// How long, in milliseconds, a window that has ended takes late rows and fires again for them.
    pub lateness: i64,
    /// The output port that rows go to which are late for every window of theirs. It has the columns of the input.
    /// Without one they are dropped and counted.
    pub late_port: Option<usize>,
    /// The key; empty for windows over the whole stream.
    pub key: Vec<KeyColumn>,
    /// The function.
    pub function: WindowFunction,
    /// What the function reads of the rows.
    pub input: ProjectionSpec,
    /// What the function reads of the key; `index` is a position in `key`.
    pub function_key: Vec<ReadColumn>,
    /// The window's bounds in the output.
    pub bounds: WindowBounds,
    /// What the function's outputs become; the origin has the columns of [`WindowSpec::origin_fields`].
    pub output: OutputSpec,
    /// What becomes of rows that the function refuses, and of rows without an event time.
    pub row_errors: RowErrorSpec,
    /// The life-cycle calls that the function wants.
    pub lifecycle: Vec<Lifecycle>,
    /// How many groups, or rows of contents, one call of the function gets when windows fire; [`FIRED_ROWS`] unless a
    /// test wants less.
    pub fired_rows: usize,
}

/// Groups or rows that fired windows hand to one call.
pub const FIRED_ROWS: usize = Limits::BATCH_ROWS;

/// A key column of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its position in the input.
    pub index: usize,
    /// What it is.
    pub field: Field,
}

/// Which windows a row falls into. All spans are milliseconds, greater than zero but for `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowAssigner {
    /// Windows of one size, one behind the other.
    Tumbling {
        /// How long a window is.
        size: i64,
        /// By how much windows start after the full multiples of their size since the epoch.
        offset: i64,
    },
    /// Windows of one size, one starting every `slide`.
    Sliding {
        /// How long a window is.
        size: i64,
        /// How far apart windows start.
        slide: i64,
        /// By how much windows start after the full multiples of `slide` since the epoch.
        offset: i64,
    },
    /// Windows of each key for itself that end when no row has come for a while.
    Session {
        /// How long that while is.
        gap: i64,
    },
    /// One window that holds every time, and so needs no event time. Without another trigger it fires at the end of
    /// input. Its rows go on without an event time.
    Global,
}

/// When windows fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// When their clock has passed their end, and again for each batch of late rows that they still take.
    AtEnd,
    /// When a key has so many rows in its window, and again after as many more. The end of the window does not fire it.
    Count(u64),
    /// As [`Trigger::AtEnd`], and before that whenever `clock` passes a multiple of `interval`. A watermark that
    /// passes several at once fires once.
    Continuous {
        /// The clock that counts.
        clock: Clock,
        /// Milliseconds between two firings.
        interval: i64,
    },
}

/// The interface behind which the function stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    /// `aggregate-function`: an accumulator a key and window.
    Aggregate {
        /// The accumulator's columns.
        accumulator: Vec<Column>,
        /// Their version.
        version: u32,
        /// The earlier versions that the module takes over.
        migrates_from: Vec<u32>,
    },
    /// `window-function`: all rows of a key and window.
    Window {
        /// The columns that the function reads, in its types and in the order of [`WindowSpec::input`].
        columns: Vec<Column>,
    },
}

/// The names of the output columns with a window's bounds, where they are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowBounds {
    /// The window's first millisecond.
    pub start: Option<String>,
    /// The first millisecond after it.
    pub end: Option<String>,
}

impl WindowSpec {
    /// The columns of the origin of fired windows: the key's, then the window's bounds as asked.
    pub fn origin_fields(key: &[KeyColumn], assigner: WindowAssigner, bounds: &WindowBounds) -> Vec<Field> {
        let nullable = assigner == WindowAssigner::Global;
        let bound = |name: &String| Field { name: name.clone(), data_type: DataType::Timestamp, nullable };
        let key = key.iter().map(|k| k.field.clone());
        key.chain(bounds.start.iter().chain(&bounds.end).map(bound)).collect()
    }

    /// Whether overlapping windows can be made of slices that they share: where accumulators can be merged and nothing
    /// has to be kept for one window alone, as under a count trigger or where a window forgets its content.
    pub(super) fn shares_slices(&self) -> bool {
        let alone = matches!(self.trigger, Trigger::Count(_)) || self.purging;
        matches!(self.function, WindowFunction::Aggregate { .. }) && !alone
    }
}
