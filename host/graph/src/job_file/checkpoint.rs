//! `checkpoint` of `[job]`.

use millstream_types::Alignment;

use crate::{CheckpointSpec, table_reader::TableReader};

/// Reads the table; none if there is none.
pub(super) fn read(job: &mut TableReader<'_>) -> Option<CheckpointSpec> {
    let mut table = job.table("checkpoint")?;
    let mut spec = CheckpointSpec::default();
    if let Some(interval) = table.positive_duration("interval") {
        spec.interval = interval.value;
    }
    spec.dir = table.string("dir").map(|dir| dir.value);
    if let Some(mode) = table.choice("mode", &MODES) {
        spec.alignment = mode.value;
    }
    if let Some(pause) = table.duration("min-pause") {
        spec.min_pause = pause.value;
    }
    if let Some(timeout) = table.positive_duration("timeout") {
        spec.timeout = timeout.value;
    }
    if let Some(most) = table.integer("max-concurrent", 1, 100) {
        spec.max_concurrent = most.value as u32;
    }
    if let Some(most) = table.integer("tolerable-failures", 0, i64::from(u32::MAX)) {
        spec.tolerable_failures = most.value as u32;
    }
    if let Some(retain) = table.integer("retain", 1, 1 << 20) {
        spec.retain = retain.value as usize;
    }
    table.finish();
    Some(spec)
}

const MODES: [(&str, Alignment); 2] =
    [("exactly-once", Alignment::Aligned), ("at-least-once", Alignment::AtLeastOnce)];
