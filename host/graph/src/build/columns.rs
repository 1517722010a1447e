//! Which column of a stream stands for which of a function's, and what happens to a value on its way in.

use millstream_types::{Column, Field, Function, Input, Schema};

use super::Drafts;
use crate::{
    BoundColumn, FunctionInput,
    document::Spanned,
    job_file::OperatorTable,
    nearest::{nearest, suggestion},
    problem::{Problem, Problems},
    source_text::Span,
};

/// Binds the columns that an input port reads.
pub(super) fn bind(
    drafts: &Drafts<'_>,
    table: &OperatorTable,
    (function, input): (&Function, &Input),
    span: &Span,
    schema: &Schema,
    streams: &str,
) -> Option<FunctionInput> {
    let bind = |column: &Column| {
        let renamed = table.columns.iter().find(|(inner, _)| inner.value == column.name);
        let name = renamed.map_or(column.name.as_str(), |(_, outer)| &outer.value);
        let span = renamed.map_or(span, |(_, outer)| &outer.span);
        let Some(index) = schema.index_of(name) else {
            missing(drafts.problems(), function, column, name, span, schema, streams);
            return None;
        };
        let (found, reject) = (&schema.fields()[index], table.on_null_reject);
        convert(drafts.problems(), &Wanted { function: &function.name, column, found, reject }, span, index)
    };
    let columns: Vec<Option<BoundColumn>> = input.columns.iter().map(bind).collect();
    Some(FunctionInput { columns: columns.into_iter().collect::<Option<_>>()?, times: input.times })
}

/// Every name on the left of `columns` is one of a column that the function reads.
pub(super) fn check_names(
    drafts: &Drafts<'_>,
    columns: &[(Spanned<String>, Spanned<String>)],
    function: &Function,
) {
    let reads: Vec<&str> = function.inputs.iter().flat_map(|i| &i.columns).map(|c| c.name.as_str()).collect();
    for (inner, _) in columns.iter().filter(|(inner, _)| !reads.contains(&inner.value.as_str())) {
        let message = format!("`{}` reads no column `{}`", function.name, inner.value);
        let help = suggestion(&inner.value, "it reads", reads.iter().copied());
        drafts.problems().push(Problem::error(message).at(&inner.span, "not read").maybe_help(help));
    }
}

/// A column that a function wants and the one that stands for it.
pub(super) struct Wanted<'a> {
    pub(super) function: &'a str,
    pub(super) column: &'a Column,
    pub(super) found: &'a Field,
    /// Whether rows with a null that the function does not take are refused.
    pub(super) reject: bool,
}

/// How a value gets in: as it is, widened, or not at all.
pub(super) fn convert(
    problems: &Problems,
    wanted: &Wanted<'_>,
    span: &Span,
    index: usize,
) -> Option<BoundColumn> {
    let Wanted { function, column, found, reject } = wanted;
    if !found.data_type.widens_to(column.data_type) {
        let (has, takes) = (found.data_type, column.data_type);
        let message =
            format!("the column `{}` is {has}, `{function}` takes {takes} for `{}`", found.name, column.name);
        problems.push(Problem::error(message).at(span, format!("{has} where {takes} was expected")));
        return None;
    }
    let loses_null = found.nullable && !column.nullable;
    if loses_null && !reject {
        let message = format!(
            "the column `{}` may be null, `{function}` takes `{}` without null",
            found.name, column.name
        );
        let help = "let the function take an optional value, or set `on-null = \"reject\"`: \
                    rows with null there are then refused and follow `on-error`";
        problems.push(Problem::error(message).at(span, "may be null").help(help));
        return None;
    }
    let cast = (found.data_type != column.data_type).then_some(column.data_type);
    Some(BoundColumn { column: index, cast, reject_null: loses_null })
}

fn missing(
    problems: &Problems,
    function: &Function,
    column: &Column,
    name: &str,
    span: &Span,
    schema: &Schema,
    streams: &str,
) {
    let message =
        format!("`{}` reads the column `{}`, which is not in {streams}", function.name, column.to_field());
    let message =
        if name == column.name { message } else { format!("there is no column `{name}` in {streams}") };
    let names = || schema.fields().iter().map(|f| f.name.as_str());
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`? columns = {{ {} = \"{near}\" }}", column.name),
        None => format!("its columns: {}", schema.names()),
    };
    problems.push(Problem::error(message).at(span, "no such column").help(help));
}
