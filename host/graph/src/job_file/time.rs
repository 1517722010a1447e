//! `time` of sources and operators.

use std::time::Duration;

use crate::{document::Spanned, table_reader::TableReader};

#[derive(Debug)]
pub(crate) struct TimeTable {
    /// None if it could not be read.
    pub(crate) column: Option<Spanned<String>>,
    pub(crate) out_of_orderness: Duration,
    pub(crate) idle: Option<Duration>,
}

pub(crate) fn read(table: &mut TableReader<'_>) -> Option<TimeTable> {
    let mut time = table.table("time")?;
    let column = time.string("column");
    if time.entry("column").is_none() {
        time.missing("column", "column = \"ts\" names the column that has a row's event time");
    }
    let out_of_orderness = time.duration("out-of-orderness").map_or(Duration::ZERO, |d| d.value);
    let idle = time.positive_duration("idle").map(|d| d.value);
    time.finish();
    Some(TimeTable { column, out_of_orderness, idle })
}
