//! Which subtasks of a source wait for each other, and for how long.

use millstream_graph::{SourceAlignment, SourceNode};
use millstream_operator::Source;
use millstream_operators::AlignmentGroup;
use millstream_protocol::MaxDrift;

use super::subtask::millis;

/// How many rows a subtask may be ahead where the job file says nothing: some tenths of a second at full speed, so that
/// subtasks that keep pace never wait.
const USUAL_ROWS: u64 = 1 << 19;

/// The group of a source's subtasks, unless they are not aligned.
pub(super) fn group(node: &SourceNode, source: &dyn Source, parallelism: u32) -> Option<AlignmentGroup> {
    let max = match node.time.as_ref()?.alignment {
        SourceAlignment::MaxDrift(drift) => MaxDrift::Time(millis(drift)),
        SourceAlignment::Usual if source.is_side_by_side() => MaxDrift::Rows(USUAL_ROWS),
        SourceAlignment::Usual | SourceAlignment::Off => return None,
    };
    (parallelism > 1).then(|| AlignmentGroup::new(max, parallelism))
}
