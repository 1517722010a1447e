//! The columns that come out of a function: those that it makes, and those that its ports carry.
//!
//! A port that extends has the origin's columns with those that the function makes: one of the same name takes its
//! place, others are appended. The origin of a map or process function's row is a row of its input; that of an aggregate
//! or window function's a window, whose columns are the key's and the window's bounds where the job file names them.

use millstream_types::{Carry, DataType, Field, Function, FunctionKind, Output, Schema};

use super::{Drafts, key::Names};
use crate::{KeyPlan, OutputColumn, OutputPlan, job_file::WindowTable, problem::Problem};

/// A column of the origin and how it is called in a plan.
type Carried = (Field, OutputColumn);

/// The plans of all output ports of a map or process function.
pub(super) fn of_rows(function: &Function, input: &Schema, key: Option<&KeyPlan>) -> Vec<OutputPlan> {
    let fields = input.fields().iter().cloned();
    let origin: Vec<Carried> = fields.enumerate().map(|(i, f)| (f, OutputColumn::Input(i))).collect();
    let timers = key.filter(|_| function.kind == FunctionKind::Process);
    function.outputs.iter().map(|port| plan(port, &origin, timers)).collect()
}

/// The plans of all output ports of an aggregate or window function.
pub(super) fn of_windows(function: &Function, key: &KeyPlan, window: &WindowTable) -> Vec<OutputPlan> {
    let fields = key.schema.fields().iter().cloned();
    let mut origin: Vec<Carried> = fields.enumerate().map(|(i, f)| (f, OutputColumn::Key(i))).collect();
    let bounds = [(&window.start, OutputColumn::WindowStart), (&window.end, OutputColumn::WindowEnd)];
    origin.extend(bounds.into_iter().filter_map(|(name, column)| {
        name.as_ref().map(|name| (Field::new(name.value.as_str(), DataType::Timestamp), column))
    }));
    function.outputs.iter().map(|port| plan(port, &origin, None)).collect()
}

/// The columns that the window's bounds are given are free, and there is a port that has them.
pub(super) fn check_bounds(
    drafts: &Drafts<'_>,
    function: &Function,
    key: Option<&Names>,
    window: &WindowTable,
) {
    let extends = |o: &&Output| o.carry == Carry::Extend;
    for bound in window.start.iter().chain(&window.end) {
        let key = key.iter().flat_map(|k| &k.value).map(|name| &name.value);
        let made = function.outputs.iter().filter(extends).flat_map(|o| &o.columns).map(|c| &c.name);
        let message = if !function.outputs.iter().any(|o| extends(&o)) {
            format!("`{}` replaces its input, so its output has no bounds of windows", function.name)
        } else if key.chain(made).any(|name| *name == bound.value) {
            format!("the output of `{}` has a column `{}` already", function.name, bound.value)
        } else {
            continue;
        };
        drafts.problems().push(Problem::error(message).at(&bound.span, "this bound of the window"));
    }
}

fn plan(port: &Output, origin: &[Carried], timers: Option<&KeyPlan>) -> OutputPlan {
    let (mut fields, mut columns): (Vec<Field>, Vec<OutputColumn>) = (Vec::new(), Vec::new());
    if port.carry == Carry::Extend {
        for (field, column) in origin {
            let made = port.columns.iter().position(|c| c.name == field.name);
            fields.push(made.map_or_else(|| field.clone(), |i| port.columns[i].to_field()));
            columns.push(made.map_or(*column, OutputColumn::Made));
        }
    }
    for (i, column) in port.columns.iter().enumerate() {
        if !columns.contains(&OutputColumn::Made(i)) {
            fields.push(column.to_field());
            columns.push(OutputColumn::Made(i));
        }
    }
    let timer_columns = timers.and_then(|key| columns.iter().map(|c| of_timer(*c, key)).collect());
    OutputPlan { schema: Schema::new(fields), columns, timer_columns }
}

/// Where a timer has a column from: a timer has a key and no row.
fn of_timer(column: OutputColumn, key: &KeyPlan) -> Option<OutputColumn> {
    match column {
        OutputColumn::Input(input) => key.columns.iter().position(|&c| c == input).map(OutputColumn::Key),
        other => Some(other),
    }
}
