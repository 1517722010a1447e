//! `time` of sources and operators.

use std::time::Duration;

use crate::{
    SourceAlignment, document::Spanned, problem::Problem, table_reader::TableReader, units::parse_duration,
};

#[derive(Debug)]
pub(crate) struct TimeTable {
    /// None if it could not be read.
    pub(crate) column: Option<Spanned<String>>,
    pub(crate) out_of_orderness: Duration,
    pub(crate) idle: Option<Duration>,
    pub(crate) alignment: SourceAlignment,
}

/// The `time` of a source.
pub(crate) fn read_of_source(table: &mut TableReader<'_>) -> Option<TimeTable> {
    read_table(table, true)
}

/// The `time` of an operator, which nothing aligns: it takes what comes.
pub(crate) fn read(table: &mut TableReader<'_>) -> Option<TimeTable> {
    read_table(table, false)
}

fn read_table(table: &mut TableReader<'_>, of_source: bool) -> Option<TimeTable> {
    let mut time = table.table("time")?;
    let column = time.string("column");
    if time.entry("column").is_none() {
        time.missing("column", "column = \"ts\" names the column that has a row's event time");
    }
    let out_of_orderness = time.duration("out-of-orderness").map_or(Duration::ZERO, |d| d.value);
    let idle = time.positive_duration("idle").map(|d| d.value);
    let expected = "a span of time such as \"10s\", or \"off\"";
    let alignment = of_source.then(|| time.parsed("alignment", expected, parse_alignment)).flatten();
    let mut alignment = alignment.map_or(SourceAlignment::Usual, |a| a.value);
    if of_source {
        join_group(&mut time, &mut alignment);
    }
    time.finish();
    Some(TimeTable { column, out_of_orderness, idle, alignment })
}

/// `alignment-group`: other sources count too, and so it has to be said how far they may be apart.
fn join_group(time: &mut TableReader<'_>, alignment: &mut SourceAlignment) {
    let Some(name) = time.string("alignment-group") else { return };
    match alignment {
        SourceAlignment::MaxDrift { group, .. } => *group = Some(name.value),
        SourceAlignment::Usual | SourceAlignment::Off => {
            let message = "`alignment-group` goes with a span of time in `alignment`, which is not there";
            let help =
                "such as alignment = \"10s\": how far this source may get ahead of the slowest in the group";
            time.problems.push(Problem::error(message).at(&name.span, "here").help(help));
        }
    }
}

fn parse_alignment(text: &str) -> Result<SourceAlignment, String> {
    match text {
        "off" => Ok(SourceAlignment::Off),
        _ => parse_duration(text)
            .map(|drift| SourceAlignment::MaxDrift { drift, group: None })
            .map_err(|e| format!("{e}; or \"off\" for none at all")),
    }
}
