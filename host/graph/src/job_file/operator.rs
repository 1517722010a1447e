//! `[operator.NAME]`.

use std::time::Duration;

use super::{
    InputTable, NodeTable, NodeTableBody, PartitionName, Scalar, TimeTable, WindowTable,
    grant::{self, Variables},
    inputs, module, node, parameter, time, window,
};
use crate::{
    FunctionLimits, Grant, RowPolicy, TrapPolicy,
    document::{Entry, Spanned, Text, Value},
    problem::{Problem, Problems},
    source_text::Span,
    table_reader::TableReader,
};

#[derive(Debug)]
pub(crate) struct OperatorTable {
    /// None if it could not be read.
    pub(crate) work: Option<Work>,
    pub(crate) inputs: Vec<InputTable>,
    /// Names in the function and in the stream.
    pub(crate) columns: Vec<(Spanned<String>, Spanned<String>)>,
    pub(crate) key: Option<Spanned<Vec<Spanned<String>>>>,
    /// None if there is none.
    pub(crate) window: Option<WindowTable>,
    /// Whether there is a `window`, readable or not.
    pub(crate) has_window: bool,
    /// A value that could not be read is none.
    pub(crate) parameters: Vec<(Spanned<String>, Option<Spanned<Scalar>>)>,
    pub(crate) partition: Option<Spanned<PartitionName>>,
    pub(crate) time: Option<TimeTable>,
    pub(crate) on_error: Spanned<RowPolicy>,
    pub(crate) on_trap: Option<Spanned<TrapPolicy>>,
    pub(crate) on_null_reject: bool,
    pub(crate) allow: Option<Vec<Grant>>,
    pub(crate) limits: FunctionLimits,
    pub(crate) state_ttl: Option<Spanned<Duration>>,
}

/// What an operator does.
#[derive(Debug)]
pub(crate) enum Work {
    Function { module: String, function: String, span: Span },
    Union,
    Watermark,
}

pub(crate) fn read(
    name: String,
    entry: &Entry,
    variables: Variables<'_>,
    problems: &Problems,
) -> Option<NodeTable> {
    let mut table = TableReader::of_entry(format!("[operator.{name}]"), entry, problems)?;
    let work = work(&mut table);
    let operator = OperatorTable {
        inputs: inputs::read(&mut table),
        columns: columns(&mut table),
        key: table.strings("key"),
        has_window: table.entry("window").is_some(),
        window: window::read(&mut table),
        parameters: parameter::read(&mut table),
        partition: node::partition(&mut table),
        time: time::read(&mut table),
        on_error: node::on_error(&mut table),
        on_trap: table.choice("on-trap", &[("fail", TrapPolicy::Fail), ("isolate", TrapPolicy::Isolate)]),
        on_null_reject: table.choice("on-null", &[("reject", ())]).is_some(),
        allow: grant::read(&mut table, variables),
        limits: module::limits(&mut table),
        state_ttl: table.positive_duration("state-ttl"),
        work,
    };
    if let Some(work @ (Work::Union | Work::Watermark)) = &operator.work {
        builtin(work, &operator, &mut table);
    }
    let common = node::common(name, entry, &mut table);
    table.finish();
    Some(common.with(NodeTableBody::Operator(Box::new(operator))))
}

fn work(table: &mut TableReader<'_>) -> Option<Work> {
    let (function, builtin) = (table.entry("function"), table.entry("builtin"));
    match (function, builtin) {
        (Some(_), None) => function_name(table),
        (None, Some(_)) => {
            let word = table.string("builtin")?;
            match word.value.as_str() {
                "union" => Some(Work::Union),
                "watermark" => Some(Work::Watermark),
                other => {
                    let message =
                        format!("there is no builtin \"{other}\": expected \"union\" or \"watermark\"");
                    table.problems.push(Problem::error(message).at(&word.span, "not known"));
                    None
                }
            }
        }
        (Some(_), Some(builtin)) => {
            let message = "an operator has either a `function` or a `builtin`, here are both";
            table.problems.push(Problem::error(message).at(&builtin.key_span, "leave one of them out"));
            None
        }
        (None, None) => {
            table.missing("function", "function = \"module.function\" names what it runs");
            None
        }
    }
}

fn function_name(table: &mut TableReader<'_>) -> Option<Work> {
    let name = table.string("function")?;
    let Some((module, function)) = name.value.split_once('.') else {
        let message = format!("`function` is \"{}\": expected \"module.function\"", name.value);
        table.problems.push(Problem::error(message).at(&name.span, "no dot here"));
        return None;
    };
    Some(Work::Function { module: module.to_owned(), function: function.to_owned(), span: name.span.clone() })
}

fn columns(table: &mut TableReader<'_>) -> Vec<(Spanned<String>, Spanned<String>)> {
    let entries = table.free_table("columns").unwrap_or_default();
    let column = |entry: &Entry| match &entry.node.value {
        Value::String(Text { text, .. }) => Some((
            Spanned::new(entry.key.clone(), &entry.key_span),
            Spanned::new(text.clone(), &entry.node.span),
        )),
        _ => {
            table.wrong_type(&entry.key, &entry.node, "the name of a column of the stream");
            None
        }
    };
    entries.iter().filter_map(column).collect()
}

/// Keys that only a function gives a meaning.
fn builtin(work: &Work, operator: &OperatorTable, table: &mut TableReader<'_>) {
    for key in
        ["columns", "state-ttl", "window", "parameters", "on-trap", "on-null", "on-error", "allow", "limits"]
    {
        if let Some(entry) = table.entry(key) {
            let message = format!("`{key}` goes with a `function`, not with a `builtin`");
            table.problems.push(Problem::error(message).at(&entry.key_span, "leave it out"));
        }
    }
    if matches!(work, Work::Watermark) && operator.time.is_none() && table.entry("time").is_none() {
        table.missing("time", "time = { column = \"ts\", out-of-orderness = \"10s\" }");
    }
}
