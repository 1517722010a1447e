//! How far event time is in the sources of this worker, told to the others, and theirs told here: sources that are aligned
//! wait for each other wherever they run.

use millstream_control::OperatorOfSubtask;
use millstream_graph::{NodeIndex, Plan};
use millstream_operators::AlignmentGroup;

use crate::build::Blueprint;

/// The source subtasks of an execution that are aligned.
pub(super) struct AlignedSources {
    /// By node, of all that are aligned.
    groups: Vec<(u32, AlignmentGroup)>,
    /// Those that run here, with what has been said of them.
    here: Vec<(OperatorOfSubtask, AlignmentGroup, Option<i64>)>,
}

impl AlignedSources {
    /// Of a plan whose subtasks in these slots run here.
    pub(super) fn new(plan: &Plan, blueprint: &Blueprint, slots: &[u32]) -> Self {
        let group = |(node, _): (NodeIndex, _)| Some((node.0 as u32, blueprint.alignment(node)?.clone()));
        let groups: Vec<_> = plan.logical.iter().filter_map(group).collect();
        let own = plan.execution.subtasks.iter().filter(|subtask| slots.contains(&subtask.slot));
        let of_subtask = |subtask: &millstream_graph::Subtask| {
            let head = plan.job.vertex(subtask.vertex).head().0 as u32;
            let (node, group) = groups.iter().find(|(node, _)| *node == head)?;
            Some((OperatorOfSubtask { node: *node, subtask: subtask.index.0 }, group.clone(), None))
        };
        let here = own.filter_map(of_subtask).collect();
        Self { groups, here }
    }

    /// What has changed here.
    pub(super) fn changed(&mut self) -> Vec<(OperatorOfSubtask, i64)> {
        let mut changed = Vec::new();
        for (of, group, said) in &mut self.here {
            let now = group.watermark(of.subtask);
            if now != *said {
                *said = now;
                changed.extend(now.map(|watermark| (*of, watermark)));
            }
        }
        changed
    }

    /// What has changed elsewhere.
    pub(super) fn set(&self, watermarks: Vec<(OperatorOfSubtask, i64)>) {
        for (of, watermark) in watermarks {
            let is_here = self.here.iter().any(|(here, ..)| *here == of);
            if let Some((_, group)) = self.groups.iter().find(|(node, _)| *node == of.node && !is_here) {
                group.set_watermark(of.subtask, watermark);
            }
        }
    }
}
