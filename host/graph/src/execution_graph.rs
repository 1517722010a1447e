//! The execution graph: a job graph with every subtask and every channel spelled out, and a slot for each subtask.
//!
//! Slots are shared: slot i has subtask i of every vertex that has so many, so a job needs as many slots as its widest
//! vertex has subtasks, and rows that stay at their position never leave their slot.

use millstream_types::{Attempt, KeyGroupRange, MaxParallelism, SubtaskIndex};

use crate::{EdgeIndex, JobGraph, Partitioning, VertexIndex};

/// All that runs.
#[derive(Clone, Debug)]
pub struct ExecutionGraph {
    /// How often the job has been started before.
    pub attempt: Attempt,
    /// How many slots the job needs.
    pub slots: u32,
    /// By vertex, then by position.
    pub subtasks: Vec<Subtask>,
    /// By edge, then by sender, then by receiver; an [`ChannelIndex`] is a position in it.
    pub channels: Vec<Channel>,
}

/// Position of a channel in [`ExecutionGraph::channels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelIndex(pub u32);

/// One of the parallel tasks of a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtask {
    /// Its vertex.
    pub vertex: VertexIndex,
    /// Its position among the vertex's subtasks.
    pub index: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// The slot that runs it.
    pub slot: u32,
    /// The key groups that are its own if the vertex is keyed.
    pub key_groups: KeyGroupRange,
}

/// A queue from one subtask to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The edge that it is a part of.
    pub edge: EdgeIndex,
    /// The sender, a subtask of the edge's `from`.
    pub from: SubtaskIndex,
    /// The receiver, a subtask of the edge's `to`.
    pub to: SubtaskIndex,
}

impl ExecutionGraph {
    /// Spells a job graph out.
    pub fn new(graph: &JobGraph, max_parallelism: MaxParallelism, attempt: Attempt) -> Self {
        let vertices = graph.vertices.iter().enumerate();
        let subtasks =
            vertices.flat_map(|(vertex, v)| subtasks(VertexIndex(vertex), v.parallelism, max_parallelism));
        let edges = graph.edges.iter().enumerate();
        let channels = edges.flat_map(|(edge, e)| {
            let (senders, receivers) = (graph.vertex(e.from).parallelism, graph.vertex(e.to).parallelism);
            channels(EdgeIndex(edge), &e.partitioning, senders, receivers)
        });
        let slots = graph.vertices.iter().map(|v| v.parallelism).max().unwrap_or(0);
        Self { attempt, slots, subtasks: subtasks.collect(), channels: channels.collect() }
    }

    /// The subtasks that share a slot, by vertex.
    pub fn subtasks_of_slot(&self, slot: u32) -> impl Iterator<Item = &Subtask> {
        self.subtasks.iter().filter(move |s| s.slot == slot)
    }

    /// The channels into a subtask.
    pub fn channels_into<'a>(
        &'a self,
        graph: &'a JobGraph,
        subtask: &'a Subtask,
    ) -> impl Iterator<Item = (ChannelIndex, &'a Channel)> {
        let (vertex, index) = (subtask.vertex, subtask.index);
        self.indexed().filter(move |(_, c)| c.to == index && graph.edges[c.edge.0].to == vertex)
    }

    /// The channels out of a subtask.
    pub fn channels_out_of<'a>(
        &'a self,
        graph: &'a JobGraph,
        subtask: &'a Subtask,
    ) -> impl Iterator<Item = (ChannelIndex, &'a Channel)> {
        let (vertex, index) = (subtask.vertex, subtask.index);
        self.indexed().filter(move |(_, c)| c.from == index && graph.edges[c.edge.0].from == vertex)
    }

    fn indexed(&self) -> impl Iterator<Item = (ChannelIndex, &Channel)> {
        self.channels.iter().enumerate().map(|(i, c)| (ChannelIndex(i as u32), c))
    }
}

fn subtasks(vertex: VertexIndex, parallelism: u32, max: MaxParallelism) -> impl Iterator<Item = Subtask> {
    (0..parallelism).map(move |i| Subtask {
        vertex,
        index: SubtaskIndex(i),
        parallelism,
        slot: i,
        key_groups: KeyGroupRange::of(i, parallelism, max),
    })
}

/// The channels of an edge; a receiver that gets nothing has none and ends at once.
fn channels(edge: EdgeIndex, partitioning: &Partitioning, senders: u32, receivers: u32) -> Vec<Channel> {
    let channel = |from, to| Channel { edge, from: SubtaskIndex(from), to: SubtaskIndex(to) };
    match partitioning {
        Partitioning::Forward => (0..senders).map(|i| channel(i, i)).collect(),
        Partitioning::Global => (0..senders).map(|i| channel(i, 0)).collect(),
        Partitioning::Hash { .. } | Partitioning::Rebalance | Partitioning::Broadcast => {
            (0..senders).flat_map(|from| (0..receivers).map(move |to| channel(from, to))).collect()
        }
    }
}
