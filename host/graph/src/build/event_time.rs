//! Event time: which column has it, and whether it gets to where it is needed.

use millstream_types::{Clock, DataType, Function, Schema};

use super::Drafts;
use crate::{
    Trigger, WindowAssigner, WindowSpec, document::Spanned, nearest::suggestion, problem::Problem,
    source_text::Span,
};

/// The position of a time column: a timestamp or an int64, never null. `of` says of what, for messages.
pub(super) fn column(
    drafts: &Drafts<'_>,
    column: &Spanned<String>,
    schema: &Schema,
    of: &str,
) -> Option<usize> {
    let problems = drafts.problems();
    let Some(index) = schema.index_of(&column.value) else {
        let message = format!("the time column `{}` is not among the columns{of}", column.value);
        let help = suggestion(&column.value, "the columns", schema.fields().iter().map(|f| f.name.as_str()));
        problems.push(Problem::error(message).at(&column.span, "no such column").maybe_help(help));
        return None;
    };
    let field = &schema.fields()[index];
    if !matches!(field.data_type, DataType::Timestamp | DataType::Int64) {
        let message = format!(
            "the time column `{}`{of} is {}: expected timestamp or int64",
            field.name, field.data_type
        );
        problems.push(Problem::error(message).at(&column.span, "has no times"));
        return None;
    }
    if field.nullable {
        let message = format!("the time column `{}`{of} may be null: every row needs a time", field.name);
        let help = "declare it without `?`: rows without a time then follow `on-error`";
        problems.push(Problem::error(message).at(&column.span, "may be null").help(help));
        return None;
    }
    Some(index)
}

/// Windows by event time need it from every source: a source without it holds them up until it ends.
pub(super) fn check_window(drafts: &Drafts<'_>, spec: &WindowSpec, span: &Span, timeless: Option<usize>) {
    let Some(source) = timeless.filter(|_| needs_event_time(spec)) else { return };
    let source = &drafts.node(source).name;
    let message = format!("the windows are by event time, and the source `{}` has no `time`", source.value);
    let problem = Problem::error(message).at(span, "by event time").at(&source.span, "without `time`");
    let help = "add time = { column = \"...\", out-of-orderness = \"...\" } there, \
                or set `clock = \"processing\"` here";
    drafts.problems().push(problem.help(help));
}

/// Timers by event time fire at the end of the input if there is no event time, which is rarely meant.
pub(super) fn check_timers(drafts: &Drafts<'_>, function: &Function, span: &Span, timeless: Option<usize>) {
    let Some(source) = timeless.filter(|_| function.timers.contains(&Clock::Event)) else { return };
    let source = &drafts.node(source).name;
    let message = format!(
        "`{}` sets timers by event time, and the source `{}` has no `time`: they fire at the end of the input only",
        function.name, source.value
    );
    drafts
        .problems()
        .push(Problem::warning(message).at(span, "sets timers").at(&source.span, "without `time`"));
}

fn needs_event_time(spec: &WindowSpec) -> bool {
    let at_end_only = matches!(spec.trigger, Trigger::EventTime | Trigger::Count(_));
    spec.clock == Clock::Event && !(spec.assigner == WindowAssigner::Global && at_end_only)
}
