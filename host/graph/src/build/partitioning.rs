//! How rows are dealt out on each stream.

use super::{Draft, Drafts, wiring::Wire};
use crate::{Partitioning, document::Spanned, job_file::PartitionName, problem::Problem};

/// The partitioning of every wire, by position.
pub(super) fn choose(drafts: &Drafts<'_>) -> Vec<Partitioning> {
    for (index, node) in drafts.file.nodes.iter().enumerate() {
        check_key(drafts, index, &node.name.value);
    }
    drafts.wiring.wires.iter().map(|wire| of_wire(drafts, wire)).collect()
}

/// What `partition` asks for goes with the key.
fn check_key(drafts: &Drafts<'_>, index: usize, name: &str) {
    let Some(draft) = drafts.get(index) else { return };
    let Some(partition) = &draft.partition else { return };
    let has_key = draft.key.is_some() || draft.body.is_none();
    let message = match partition.value {
        PartitionName::Hash if !has_key => format!("`{name}` has no `key` by which rows could be dealt out"),
        PartitionName::Hash => return,
        _ if draft.keyed && draft.key.is_some() => {
            format!("`{name}` is keyed, so its rows have to be dealt out by hash")
        }
        _ => return,
    };
    drafts.problems().push(Problem::error(message).at(&partition.span, "here"));
}

fn of_wire(drafts: &Drafts<'_>, wire: &Wire) -> Partitioning {
    let (Some(from), Some(to)) = (drafts.get(wire.from), drafts.get(wire.to)) else {
        return Partitioning::Forward;
    };
    let hash = || Partitioning::Hash { key: to.key.clone().unwrap_or_default() };
    match &to.partition {
        None if to.key.is_some() => hash(),
        None if from.parallelism == to.parallelism => Partitioning::Forward,
        None if to.parallelism == 1 => Partitioning::Global,
        None => Partitioning::Rebalance,
        Some(partition) => match partition.value {
            PartitionName::Forward => forward(drafts, wire, (from, to), partition),
            PartitionName::Rebalance => Partitioning::Rebalance,
            PartitionName::Hash => hash(),
            PartitionName::Broadcast => Partitioning::Broadcast,
            PartitionName::Global => Partitioning::Global,
        },
    }
}

fn forward(
    drafts: &Drafts<'_>,
    wire: &Wire,
    (from, to): (&Draft, &Draft),
    partition: &Spanned<PartitionName>,
) -> Partitioning {
    if from.parallelism != to.parallelism {
        let message = format!(
            "`{}` has parallelism {} and `{}` has {}: forward needs the same on both sides",
            wire.stream.value.node,
            from.parallelism,
            drafts.node(wire.to).name.value,
            to.parallelism
        );
        drafts
            .problems()
            .push(Problem::error(message).at(&partition.span, "here").at(&wire.stream.span, "this stream"));
    }
    Partitioning::Forward
}
