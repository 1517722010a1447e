//! `checkpoint` of `[job]`.

use std::time::Duration;

use millstream_types::Alignment;

use crate::{CheckpointSpec, document::Spanned, problem::Problem, table_reader::TableReader};

/// Reads the table; none if there is none.
pub(super) fn read(job: &mut TableReader<'_>) -> Option<CheckpointSpec> {
    let mut table = job.table("checkpoint")?;
    let mut spec = CheckpointSpec::default();
    if let Some(interval) = table.positive_duration("interval") {
        spec.interval = interval.value;
    }
    spec.dir = table.string("dir").map(|dir| dir.value);
    let mode = table.choice("mode", &MODES);
    let unaligned = table.boolean("unaligned");
    let limit = table.duration("aligned-timeout");
    if let Some(pause) = table.duration("min-pause") {
        spec.min_pause = pause.value;
    }
    if let Some(timeout) = table.positive_duration("timeout") {
        spec.timeout = timeout.value;
    }
    spec.alignment = alignment(&table, mode, unaligned, limit.filter(|limit| in_time(&table, limit, &spec)));
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

/// Whether a barrier that overtakes after so long can do any good.
fn in_time(table: &TableReader<'_>, limit: &Spanned<Duration>, spec: &CheckpointSpec) -> bool {
    let in_time = limit.value < spec.timeout;
    if !in_time {
        let message = format!(
            "`aligned-timeout` is {:?}, and the checkpoint is given up after {:?}: expected less than its `timeout`",
            limit.value, spec.timeout
        );
        table.problems.push(Problem::error(message).at(&limit.span, "too long"));
    }
    in_time
}

/// What becomes of channels that have passed a barrier.
fn alignment(
    table: &TableReader<'_>,
    mode: Option<Spanned<Alignment>>,
    unaligned: Option<Spanned<bool>>,
    limit: Option<Spanned<Duration>>,
) -> Alignment {
    let aligned = mode.as_ref().map_or(Alignment::Aligned, |mode| mode.value);
    let Some(unaligned) = unaligned.filter(|unaligned| unaligned.value) else {
        if let Some(limit) = limit {
            let message =
                "`aligned-timeout` says when barriers overtake, which they do only with `unaligned = true`";
            table.problems.push(Problem::error(message).at(&limit.span, "here"));
        }
        return aligned;
    };
    if let Some(mode) = mode.filter(|_| aligned == Alignment::AtLeastOnce) {
        let message = "`unaligned` does not go with `mode = \"at-least-once\"`, which waits for no channel anyway: \
                       barriers overtake rows so that each counts exactly once without waiting";
        let help = "leave out `mode`, or `unaligned`";
        table
            .problems
            .push(Problem::error(message).at(&unaligned.span, "here").at(&mode.span, "this mode").help(help));
        return aligned;
    }
    match limit {
        Some(limit) if !limit.value.is_zero() => Alignment::AlignedFor(limit.value),
        _ => Alignment::Unaligned,
    }
}

const MODES: [(&str, Alignment); 2] =
    [("exactly-once", Alignment::Aligned), ("at-least-once", Alignment::AtLeastOnce)];
