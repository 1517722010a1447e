//! `[module.NAME]`, and what operators share with it: grants and limits.

use super::grant::{self, Variables};
use crate::{
    FunctionLimits, Grant,
    document::{Entry, Spanned},
    problem::Problems,
    table_reader::TableReader,
};

#[derive(Debug)]
pub(crate) struct ModuleTable {
    pub(crate) name: Spanned<String>,
    /// None if it could not be read.
    pub(crate) path: Option<Spanned<String>>,
    pub(crate) allow: Option<Vec<Grant>>,
    pub(crate) limits: FunctionLimits,
}

pub(crate) fn read(
    name: String,
    entry: &Entry,
    variables: Variables<'_>,
    problems: &Problems,
) -> ModuleTable {
    let name = Spanned::new(name, &entry.key_span);
    let Some(mut table) = TableReader::of_entry(format!("[module.{}]", name.value), entry, problems) else {
        return ModuleTable { name, path: None, allow: None, limits: FunctionLimits::default() };
    };
    let path = table.string("path");
    table.not_available("ref", "modules in a cluster's store are not available in this version: use `path`");
    if table.entry("path").is_none() && table.entry("ref").is_none() {
        table.missing("path", "path = \"functions.wasm\"");
    }
    let (allow, limits) = (grant::read(&mut table, variables), limits(&mut table));
    table.finish();
    ModuleTable { name, path, allow, limits }
}

/// `limits = { memory = "64MiB" }`.
pub(crate) fn limits(table: &mut TableReader<'_>) -> FunctionLimits {
    let Some(mut limits) = table.table("limits") else { return FunctionLimits::default() };
    let read = FunctionLimits {
        memory: limits.bytes("memory", PAGE_KIB).map(|m| m.value),
        call_timeout: limits.positive_duration("call-timeout").map(|t| t.value),
        output: limits.bytes("output", LEAST_OUTPUT_KIB).map(|m| m.value),
        recycle_memory: limits.bytes("recycle-memory", 0).map(|m| m.value),
    };
    limits.finish();
    read
}

/// Memory grows by pages of this size, and no module does with less than one.
const PAGE_KIB: u64 = 64;
/// What a call that makes a row or two hands over.
const LEAST_OUTPUT_KIB: u64 = 1;
