//! `state` of `[job]`.

use std::time::Duration;

use crate::{StateSpec, table_reader::TableReader};

/// Reads the table, or what holds without one.
pub(super) fn read(job: &mut TableReader<'_>) -> (StateSpec, Option<Duration>) {
    let Some(mut table) = job.table("state") else { return (StateSpec::Memory, None) };
    let has_ttl = table.entry("ttl").is_some();
    let ttl = table.positive_duration("ttl").map(|ttl| ttl.value);
    if table.entry("backend").is_none() {
        if has_ttl && table.entry("memory").or(table.entry("dir")).is_none() {
            table.finish();
            return (StateSpec::Memory, ttl);
        }
        table.missing("backend", "backend = \"rocksdb\"");
    }
    let backend = table.choice("backend", &BACKENDS);
    // A word that is none is told; the other keys are most likely those of the backend that has some.
    let spec = match backend.map_or(Backend::RocksDb, |b| b.value) {
        Backend::Memory => StateSpec::Memory,
        Backend::RocksDb => StateSpec::RocksDb {
            memory: table.bytes("memory", LEAST_KIB).map_or(StateSpec::MEMORY, |m| m.value),
            dir: table.string("dir").map(|dir| dir.value),
        },
    };
    table.finish();
    (spec, ttl)
}

#[derive(Clone, Copy)]
enum Backend {
    Memory,
    RocksDb,
}

const BACKENDS: [(&str, Backend); 2] = [("memory", Backend::Memory), ("rocksdb", Backend::RocksDb)];
/// The least memory that RocksDB can be told to do with.
const LEAST_KIB: u64 = 16 << 10;
