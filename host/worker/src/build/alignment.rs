//! Which subtasks of sources wait for each other, and for how long.

use std::collections::{BTreeMap, HashMap};

use millstream_graph::{LogicalGraph, NodeBody, NodeIndex, SourceAlignment, SourceNode};
use millstream_operator::Source;
use millstream_operators::AlignmentGroup;
use millstream_protocol::MaxDrift;

use super::subtask::millis;

/// How many rows a subtask may be ahead where the job file says nothing: some tenths of a second at full speed, so that
/// subtasks that keep pace never wait.
const USUAL_ROWS: u64 = 1 << 19;

/// The groups of those sources that the job file aligns.
pub(super) fn groups(graph: &LogicalGraph) -> HashMap<NodeIndex, AlignmentGroup> {
    let mut members: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, node) in graph.iter() {
        let NodeBody::Source(SourceNode { time: Some(time), .. }) = &node.body else { continue };
        let SourceAlignment::MaxDrift { drift, group } = &time.alignment else { continue };
        // A source without a group is one by itself.
        let name = group.as_deref().ok_or(index);
        members.entry(name).or_default().push((index, (MaxDrift::Time(millis(*drift)), node.parallelism)));
    }
    let several = members.into_values().map(|sources| sources.into_iter().unzip());
    several
        .flat_map(|(nodes, sources): (Vec<_>, Vec<_>)| {
            nodes.into_iter().zip(AlignmentGroup::of_sources(&sources))
        })
        .collect()
}

/// The group of a source's subtasks where the job file says nothing.
pub(super) fn usual(node: &SourceNode, source: &dyn Source, parallelism: u32) -> Option<AlignmentGroup> {
    let usual = node.time.as_ref()?.alignment == SourceAlignment::Usual && source.is_side_by_side();
    (usual && parallelism > 1).then(|| AlignmentGroup::new(MaxDrift::Rows(USUAL_ROWS), parallelism))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millstream_graph::{JobFile, JobFormat, Plan, SourceText};
    use millstream_wasm::{WasmEngine, WasmOptions};

    use super::*;
    use crate::{Catalog, Modules};

    /// The groups of a job of generators that are called by a letter, with what their `time` says.
    fn groups_of(sources: &[(&str, &str)]) -> Vec<AlignmentGroup> {
        let source = |(name, alignment): &(&str, &str)| {
            format!(
                "[source.{name}]\nconnector = \"generator\"\nparallelism = 2\n\
                 fields = {{ at = {{ kind = \"time\", start = \"2024-01-01T00:00:00Z\", step = \"1s\" }} }}\n\
                 time = {{ column = \"at\", {alignment} }}\n[sink.of_{name}]\nconnector = \"blackhole\"\ninput = \"{name}\"\n"
            )
        };
        let job: String = sources.iter().map(source).collect();
        let text = SourceText::new("job.toml", format!("[job]\nname = \"aligned\"\n{job}"));
        let file = JobFile::read(text, JobFormat::Toml, &|_| None);
        let engine = Arc::new(WasmEngine::new(WasmOptions::default()).expect("an engine"));
        let plan = Plan::new(file, &Modules::new(engine), &Catalog::new("")).expect("a good job");
        let mut groups = groups(&plan.logical);
        let index = |name: &str| plan.logical.iter().find(|(_, node)| node.name == name).expect("a node").0;
        sources.iter().filter_map(|(name, _)| groups.remove(&index(name))).collect()
    }

    /// Whether a subtask of the first source waits for one of the second.
    fn waits_for(first: &AlignmentGroup, second: &AlignmentGroup) -> bool {
        let mut ahead = first.member(0).expect("one of two");
        let slow = second.member(1).expect("one of two");
        ahead.read(1, 1_000_000);
        let waits = !ahead.may_read();
        drop(slow);
        waits
    }

    #[test]
    fn sources_wait_for_those_in_their_group() {
        let groups = groups_of(&[
            ("a", "alignment = \"1s\", alignment-group = \"x\""),
            ("b", "alignment = \"5s\", alignment-group = \"x\""),
            ("c", "alignment = \"1s\", alignment-group = \"y\""),
            ("d", "alignment = \"1s\""),
            ("e", "alignment = \"off\""),
        ]);
        let [a, b, c, d] = groups.try_into().expect("all but the last one");
        // Nobody waits for members that have gone.
        for group in [&a, &b, &c, &d] {
            drop([0, 1].map(|i| group.member(i)));
        }
        assert!(waits_for(&a, &b) && waits_for(&b, &a));
        assert!(!waits_for(&a, &c) && !waits_for(&c, &a) && !waits_for(&d, &a));
    }
}
