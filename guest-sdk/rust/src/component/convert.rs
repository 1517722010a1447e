//! Between the generated types and the SDK's: the lists are moved, not copied.

use super::bindings::exports::millstream::function::aggregate_function;
use super::bindings::millstream::function::types;
use crate::column::{Batch, Column, Values, VarValues};
use crate::function::{Accumulated, Origin, Outcome, PortOutput, Rejected};
use crate::host::{Cells, Runs};
use crate::time::{Clock, Window};

pub(crate) fn batch_in(batch: types::Batch) -> Batch {
    Batch { rows: batch.rows as usize, columns: batch.columns.into_iter().map(column_in).collect() }
}

fn column_in(column: types::Column) -> Column {
    let values = match column.values {
        types::Values::Bits(bits) => Values::Bits(bits),
        types::Values::Int32(values) => Values::Int32(values),
        types::Values::Int64(values) => Values::Int64(values),
        types::Values::Float32(values) => Values::Float32(values),
        types::Values::Float64(values) => Values::Float64(values),
        types::Values::Var(values) => Values::Var(var_in(values)),
        // Layouts that no type of this SDK has: an empty column is refused where it is looked at.
        _ => Values::Bits(Vec::new()),
    };
    Column { validity: column.validity, values }
}

pub(crate) fn var_in(values: types::VarValues) -> VarValues {
    VarValues { offsets: values.offsets, bytes: values.bytes }
}

pub(crate) fn var_out(values: VarValues) -> types::VarValues {
    types::VarValues { offsets: values.offsets, bytes: values.bytes }
}

pub(crate) fn batch_out(batch: Batch) -> types::Batch {
    types::Batch { rows: batch.rows as u32, columns: columns_out(batch.columns) }
}

fn columns_out(columns: Vec<Column>) -> Vec<types::Column> {
    columns.into_iter().map(column_out).collect()
}

fn column_out(column: Column) -> types::Column {
    let values = match column.values {
        Values::Bits(bits) => types::Values::Bits(bits),
        Values::Int32(values) => types::Values::Int32(values),
        Values::Int64(values) => types::Values::Int64(values),
        Values::Float32(values) => types::Values::Float32(values),
        Values::Float64(values) => types::Values::Float64(values),
        Values::Var(values) => types::Values::Var(var_out(values)),
    };
    types::Column { validity: column.validity, values, children: Vec::new() }
}

pub(crate) fn cells_in(cells: types::Cells) -> Cells {
    Cells { present: cells.present, values: batch_in(cells.values) }
}

pub(crate) fn cells_out(cells: Cells) -> types::Cells {
    types::Cells { present: cells.present, values: batch_out(cells.values) }
}

pub(crate) fn runs_out(runs: Runs) -> types::Runs {
    types::Runs { offsets: runs.offsets, items: batch_out(runs.items) }
}

pub(crate) fn clock_in(clock: types::Clock) -> Clock {
    match clock {
        types::Clock::Event => Clock::Event,
        types::Clock::Processing => Clock::Processing,
    }
}

pub(crate) fn clock_out(clock: Clock) -> types::Clock {
    match clock {
        Clock::Event => types::Clock::Event,
        Clock::Processing => types::Clock::Processing,
    }
}

pub(crate) fn windows_in(windows: Vec<types::Window>) -> Vec<Window> {
    windows.into_iter().map(|window| Window { start: window.start, end: window.end }).collect()
}

pub(crate) fn outcome_out(outcome: Outcome) -> types::Outcome {
    types::Outcome {
        outputs: outcome.outputs.into_iter().map(output_out).collect(),
        rejected: outcome.rejected.into_iter().map(rejected_out).collect(),
    }
}

pub(crate) fn accumulated_out(accumulated: Accumulated) -> aggregate_function::Accumulated {
    aggregate_function::Accumulated {
        accumulators: batch_out(accumulated.accumulators),
        rejected: accumulated.rejected.into_iter().map(rejected_out).collect(),
    }
}

fn output_out(output: PortOutput) -> types::Output {
    let origin = match output.origin {
        Origin::Each => types::Origin::Each,
        Origin::Picked(rows) => types::Origin::Picked(rows),
        Origin::Made(times) => types::Origin::Made(times),
    };
    types::Output {
        port: output.port,
        rows: output.rows as u32,
        origin,
        columns: columns_out(output.columns),
    }
}

fn rejected_out(rejected: Rejected) -> types::Rejected {
    types::Rejected { row: rejected.row, reason: rejected.reason, retryable: false }
}
