//! The columns by which rows are keyed and dealt out.

use millstream_types::{Distribution, Function, FunctionKind, Schema};

use super::{
    Drafts,
    columns::{self, Wanted},
};
use crate::{
    KeyPlan, document::Spanned, job_file::OperatorTable, nearest::suggestion, problem::Problem,
    source_text::Span,
};

/// The names of key columns with their places.
pub(super) type Names = Spanned<Vec<Spanned<String>>>;

/// Positions of the key columns; none if one is not there, which is reported.
pub(super) fn positions(
    drafts: &Drafts<'_>,
    key: &Names,
    schema: &Schema,
    streams: &str,
) -> Option<Vec<usize>> {
    let position = |(i, name): (usize, &Spanned<String>)| {
        if key.value[..i].iter().any(|n| n.value == name.value) {
            let message = format!("the key names the column `{}` twice", name.value);
            drafts.problems().push(Problem::error(message).at(&name.span, "again"));
            return None;
        }
        let found = schema.index_of(&name.value);
        if found.is_none() {
            let message = format!("the key column `{}` is not among the columns of {streams}", name.value);
            let help =
                suggestion(&name.value, "its columns", schema.fields().iter().map(|f| f.name.as_str()));
            drafts.problems().push(Problem::error(message).at(&name.span, "no such column").maybe_help(help));
        }
        found
    };
    let found: Vec<Option<usize>> = key.value.iter().enumerate().map(position).collect();
    found.into_iter().collect()
}

/// The key of a function: `Ok(None)` if it has none and needs none, an error if it is wrong or not known.
pub(super) fn plan(
    drafts: &Drafts<'_>,
    index: usize,
    table: &OperatorTable,
    function: &Function,
    span: &Span,
    schema: Option<&Schema>,
) -> Result<Option<KeyPlan>, ()> {
    let whole_stream =
        || Ok(Some(KeyPlan { columns: Vec::new(), schema: Schema::empty(), function_columns: Vec::new() }));
    let Some(key) = table.key.as_ref().filter(|k| !k.value.is_empty()) else {
        let has_key = table.key.is_some();
        return match function.kind {
            _ if !function.key.is_empty() => refuse_missing(drafts, function, span),
            FunctionKind::Map | FunctionKind::Async if !is_keyed(function) => Ok(None),
            FunctionKind::Aggregate | FunctionKind::Window => whole_stream(),
            _ if !has_key => refuse_keyless(drafts, function, span),
            _ => whole_stream(),
        };
    };
    let schema = schema.ok_or(())?;
    let columns = positions(drafts, key, schema, &super::input::stream_names(drafts, index)).ok_or(())?;
    let key_schema = Schema::new(columns.iter().map(|&c| schema.fields()[c].clone()).collect::<Vec<_>>());
    let function_columns = function_columns(drafts, table, function, key, &key_schema).ok_or(())?;
    Ok(Some(KeyPlan { columns, schema: key_schema, function_columns }))
}

/// The key columns that the function sees: none, or all of them by position.
fn function_columns(
    drafts: &Drafts<'_>,
    table: &OperatorTable,
    function: &Function,
    key: &Names,
    schema: &Schema,
) -> Option<Vec<crate::BoundColumn>> {
    if function.key.is_empty() {
        return Some(Vec::new());
    }
    if function.key.len() != schema.len() {
        let names: Vec<_> = function.key.iter().map(|c| c.to_field().to_string()).collect();
        let message = format!(
            "`{}` has a key of {} ({}), here are {}",
            function.name,
            count(names.len()),
            names.join(", "),
            count(schema.len())
        );
        drafts.problems().push(Problem::error(message).at(&key.span, "this key"));
        return None;
    }
    let bound = function.key.iter().enumerate().map(|(i, column)| {
        let wanted = Wanted {
            function: &function.name,
            column,
            found: &schema.fields()[i],
            reject: table.on_null_reject,
        };
        columns::convert(drafts.problems(), &wanted, &key.value[i].span, i)
    });
    let bound: Vec<_> = bound.collect();
    bound.into_iter().collect()
}

/// Whether the function wants all rows of a key in one subtask.
fn is_keyed(function: &Function) -> bool {
    function.inputs.iter().any(|i| i.distribution == Distribution::Keyed)
}

fn count(columns: usize) -> String {
    if columns == 1 { "1 column".to_owned() } else { format!("{columns} columns") }
}

fn refuse_missing<T>(drafts: &Drafts<'_>, function: &Function, span: &Span) -> Result<T, ()> {
    let names: Vec<_> = function.key.iter().map(|c| c.to_field().to_string()).collect();
    let message = format!("`{}` needs a key of {} ({})", function.name, count(names.len()), names.join(", "));
    let problem = Problem::error(message).at(span, "has no key");
    drafts.problems().push(problem.help(format!("key = [\"{}\"]", function.key[0].name)));
    Err(())
}

fn refuse_keyless<T>(drafts: &Drafts<'_>, function: &Function, span: &Span) -> Result<T, ()> {
    let what =
        if function.kind == FunctionKind::Process { "is a process function" } else { "has a keyed input" };
    let message = format!("`{}` {what}, which needs a key", function.name);
    let problem = Problem::error(message).at(span, "has no key");
    drafts.problems().push(problem.help("key = [\"column\"], or key = [] for one key over the whole stream"));
    Err(())
}
