//! Groups of fired windows on their way to the function and out.

use std::sync::Arc;

use arrow_array::{ArrayRef, TimestampMillisecondArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use millstream_operator::{Collector, OperatorContext, OperatorError, Rejected};
use millstream_types::{Batch, Columns, DataType, EncodedKeys, KeyReader, NO_TIME, Schema, Window};

use super::{WindowSpec, columns::join};
use crate::{OutputSpec, ReadColumn, RowErrors, project::widen};

/// Groups, each a key in a window, with their accumulators or rows.
#[derive(Debug, Default)]
pub(super) struct Fired {
    keys: EncodedKeys,
    windows: Vec<Window>,
    parts: Vec<Columns>,
    /// Where the rows of each group end; empty for accumulators.
    ends: Vec<u32>,
}

impl Fired {
    /// Adds groups of one window with an accumulator each.
    pub(super) fn push_accumulators(&mut self, window: Window, keys: EncodedKeys, accumulators: Columns) {
        self.push_keys(std::iter::repeat_n(window, keys.len()), keys);
        self.parts.push(accumulators);
    }

    /// Adds groups with their rows: those of group i end at `offsets[i + 1]`.
    pub(super) fn push_rows(
        &mut self,
        windows: impl IntoIterator<Item = Window>,
        keys: EncodedKeys,
        offsets: &[u32],
        rows: Columns,
    ) {
        self.push_keys(windows, keys);
        let before = self.ends.last().copied().unwrap_or(0);
        self.ends.extend(offsets.iter().skip(1).map(|end| before + end));
        self.parts.push(rows);
    }

    /// Adds groups of several windows with an accumulator each.
    pub(super) fn push_keys(&mut self, windows: impl IntoIterator<Item = Window>, keys: EncodedKeys) {
        self.windows.extend(windows);
        self.keys.append(keys);
        debug_assert_eq!(self.windows.len(), self.keys.len(), "a window for each key");
    }

    /// Adds the accumulators of groups whose keys have been added.
    pub(super) fn push_part(&mut self, accumulators: Columns) {
        self.parts.push(accumulators);
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.windows.len()
    }

    /// How much one call of the function gets: groups, or rows where there are rows.
    pub(super) fn size(&self) -> usize {
        self.groups().max(self.ends.last().map_or(0, |&end| end as usize))
    }

    /// The windows of the groups.
    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Positions of the groups' rows, one more than there are groups.
    pub(super) fn offsets(&self) -> Vec<u32> {
        std::iter::once(0).chain(self.ends.iter().copied()).collect()
    }

    /// All groups' accumulators or rows.
    pub(super) fn take_columns(&mut self) -> Columns {
        join(std::mem::take(&mut self.parts))
    }
}

/// Turns what a function made of fired windows into batches.
pub(super) struct FiredOutput {
    key: KeyReader,
    function_key: Vec<ReadColumn>,
    start: bool,
    end: bool,
    origin: Schema,
    output: OutputSpec,
    row_errors: RowErrors,
}

impl FiredOutput {
    pub(super) fn new(spec: &WindowSpec, ctx: &OperatorContext) -> Self {
        let types: Vec<DataType> = spec.key.iter().map(|k| k.field.data_type).collect();
        Self {
            key: KeyReader::new(types),
            function_key: spec.function_key.clone(),
            start: spec.bounds.start.is_some(),
            end: spec.bounds.end.is_some(),
            origin: Schema::new(WindowSpec::origin_fields(&spec.key, spec.assigner, &spec.bounds)),
            output: spec.output.clone(),
            row_errors: RowErrors::new(spec.row_errors, ctx),
        }
    }

    /// The policy for rows that are refused.
    pub(super) fn row_errors(&self) -> &RowErrors {
        &self.row_errors
    }

    /// The key columns that the function reads, one row a group.
    pub(super) fn function_keys(&self, fired: &Fired) -> Result<Columns, OperatorError> {
        if self.function_key.is_empty() {
            return Ok(Columns::new(fired.groups(), Vec::new()));
        }
        let key = self.key.read(fired.keys.iter())?;
        let arrays = self.function_key.iter().map(|read| widen(&key[read.index], read.data_type)).collect();
        Ok(Columns::new(fired.groups(), arrays))
    }

    /// What the output rows come from: a row a group with its key, the window's bounds and its time. Without the
    /// columns if no output has them.
    pub(super) fn origin(&self, fired: &Fired) -> Result<Batch, OperatorError> {
        if !self.output.carries() {
            return Ok(Batch::new(&Schema::empty(), Vec::new(), times(fired))?);
        }
        self.full_origin(fired)
    }

    fn full_origin(&self, fired: &Fired) -> Result<Batch, OperatorError> {
        let mut columns = self.key.read(fired.keys.iter())?;
        if self.start {
            columns.push(bounds(fired, |window| window.start));
        }
        if self.end {
            columns.push(bounds(fired, |window| window.end));
        }
        Ok(Batch::new(&self.origin, columns, times(fired))?)
    }

    /// Treats groups that the function refuses to finish.
    pub(super) fn refuse_groups(
        &self,
        fired: &Fired,
        rejected: &[Rejected],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if rejected.is_empty() {
            return Ok(());
        }
        self.row_errors.refuse(&self.full_origin(fired)?, rejected, out)
    }

    /// Emits what the function made.
    pub(super) fn emit(
        &self,
        call: &'static str,
        origin: &Batch,
        outputs: Vec<millstream_operator::FunctionOutput>,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        self.output.emit(call, origin, outputs, out)
    }
}

/// The event times of what windows make: the last that belongs to them, and none where a window has no end.
fn times(fired: &Fired) -> ScalarBuffer<i64> {
    let time = |window: &Window| if *window == Window::GLOBAL { NO_TIME } else { window.max_time() };
    fired.windows.iter().map(time).collect()
}

fn bounds(fired: &Fired, of: impl Fn(&Window) -> i64) -> ArrayRef {
    let bounds: Vec<i64> = fired.windows.iter().map(&of).collect();
    let is_global = |i: usize| fired.windows[i] == Window::GLOBAL;
    let valid = BooleanBuffer::collect_bool(bounds.len(), |i| !is_global(i));
    let nulls = Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0);
    let bounds = TimestampMillisecondArray::new(bounds.into(), nulls);
    Arc::new(bounds.with_data_type(DataType::Timestamp.to_arrow()))
}
