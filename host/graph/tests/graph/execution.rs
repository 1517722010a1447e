//! Subtasks, slots and channels.

use millstream_graph::{Plan, SubtaskState};
use millstream_types::KeyGroupRange;

use crate::support::{JOB, edited, plan};

/// The channels of the exchange into a node, as `from>to`.
fn channels(plan: &Plan, to: &str) -> String {
    let into = |c: &&millstream_graph::Channel| {
        let edge = &plan.job.edges[c.edge.0];
        plan.logical.node(plan.job.vertex(edge.to).head()).name == to
    };
    let channels = plan.execution.channels.iter().filter(into);
    channels.map(|c| format!("{}>{}", c.from, c.to)).collect::<Vec<_>>().join(" ")
}

fn sink(settings: &str) -> Plan {
    plan(&edited(&[("[sink.out]", &format!("[sink.out]\nchain = false\n{settings}"))])).expect("valid")
}

#[test]
fn channels_follow_the_partitioning() {
    assert_eq!(channels(&sink(""), "stats"), "0>0 0>1 1>0 1>1", "hash");
    assert_eq!(channels(&sink(""), "out"), "0>0 1>1", "forward");
    assert_eq!(channels(&sink("parallelism = 1"), "out"), "0>0 1>0", "global");
    assert_eq!(channels(&sink("partition = \"global\""), "out"), "0>0 1>0", "global to one of two");
    assert_eq!(channels(&sink("parallelism = 3"), "out"), "0>0 0>1 0>2 1>0 1>1 1>2", "rebalance");
    assert_eq!(channels(&sink("partition = \"broadcast\""), "out"), "0>0 0>1 1>0 1>1", "broadcast");
}

#[test]
fn a_hash_exchange_stays_one_at_parallelism_1() {
    let plan = plan(&JOB.replace("parallelism = 2", "parallelism = 1")).expect("valid");
    assert_eq!(channels(&plan, "stats"), "0>0");
    assert_eq!(plan.execution.slots, 1);
}

#[test]
fn slot_i_has_subtask_i_of_every_vertex_that_has_so_many() {
    let plan = sink("parallelism = 3");
    assert_eq!(plan.execution.slots, 3);
    let slot =
        |slot| plan.execution.subtasks_of_slot(slot).map(|s| (s.vertex.0, s.index.0)).collect::<Vec<_>>();
    assert_eq!(slot(0), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(slot(2), [(2, 2)]);
}

#[test]
fn the_subtasks_of_a_vertex_own_all_key_groups() {
    let plan = sink("parallelism = 3");
    let groups: Vec<_> =
        plan.execution.subtasks.iter().filter(|s| s.vertex.0 == 2).map(|s| &s.key_groups).collect();
    assert_eq!(groups, [&KeyGroupRange(0..43), &KeyGroupRange(43..86), &KeyGroupRange(86..128)]);
}

#[test]
fn a_subtask_finds_its_channels() {
    let plan = sink("parallelism = 1");
    let subtask = |vertex, index| {
        plan.execution.subtasks.iter().find(|s| (s.vertex.0, s.index.0) == (vertex, index)).expect("there")
    };
    let into = |s| plan.execution.channels_into(&plan.job, s).map(|(_, c)| c.from.0).collect::<Vec<_>>();
    let out_of = |s| plan.execution.channels_out_of(&plan.job, s).map(|(_, c)| c.to.0).collect::<Vec<_>>();
    assert_eq!((into(subtask(0, 0)), out_of(subtask(0, 0))), (vec![], vec![0, 1]));
    assert_eq!((into(subtask(1, 1)), out_of(subtask(1, 1))), (vec![0, 1], vec![0]));
    assert_eq!((into(subtask(2, 0)), out_of(subtask(2, 0))), (vec![0, 1], vec![]));
}

#[test]
fn states_have_the_names_that_the_api_uses() {
    for state in SubtaskState::ALL {
        assert_eq!(serde_json::to_value(state).expect("plain data"), state.name());
    }
}
