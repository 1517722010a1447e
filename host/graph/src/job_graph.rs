//! The job graph: nodes that can run in one task, without an exchange between them, share a vertex as a chain.
//!
//! A node joins the chain of the node that it reads from when the edge between them is a forward one, it has no other
//! input edge, both have the same parallelism and neither forbids it. A node may have several readers in its chain, so
//! chains are trees. Hash edges are exchanges even where one subtask stands on both sides: the keyed side of a job
//! then has its own task, whose load and backpressure show by themselves.

use millstream_types::{PortIndex, Schema};

use crate::{LogicalEdge, LogicalGraph, NodeIndex, Partitioning};

/// Vertices and the exchanges between them.
#[derive(Clone, Debug)]
pub struct JobGraph {
    /// In topological order.
    pub vertices: Vec<JobVertex>,
    /// By source vertex, then by position in its chain.
    pub edges: Vec<JobEdge>,
}

/// Position of a vertex in [`JobGraph::vertices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexIndex(pub usize);

/// Position of an edge in [`JobGraph::edges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIndex(pub usize);

/// A chain of nodes that run in one task.
#[derive(Clone, Debug)]
pub struct JobVertex {
    /// The names of its nodes in order, with arrows between them.
    pub name: String,
    /// Number of its subtasks.
    pub parallelism: u32,
    /// The chain: its head first, and each node behind the one that it reads from.
    pub chain: Vec<ChainedNode>,
}

/// A node in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainedNode {
    /// The node.
    pub node: NodeIndex,
    /// What it reads within the chain; none for the head, which is a source or reads from [`JobGraph::edges`].
    pub input: Option<ChainInput>,
}

/// What a chained node reads. It has one input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainInput {
    /// Position in the chain of the node that makes the rows.
    pub from: usize,
    /// That node's output port.
    pub output: PortIndex,
}

/// An exchange between two vertices.
#[derive(Clone, Debug)]
pub struct JobEdge {
    /// The vertex that sends.
    pub from: VertexIndex,
    /// Position in its chain of the node that sends.
    pub chained: usize,
    /// That node's output port.
    pub output: PortIndex,
    /// The vertex whose head receives.
    pub to: VertexIndex,
    /// The head's input port.
    pub input: PortIndex,
    /// How rows are dealt out.
    pub partitioning: Partitioning,
    /// The columns of the rows.
    pub schema: Schema,
}

impl JobGraph {
    /// Puts nodes into chains.
    pub fn new(graph: &LogicalGraph) -> Self {
        let mut places: Vec<(VertexIndex, usize)> = Vec::with_capacity(graph.nodes.len());
        let mut vertices: Vec<JobVertex> = Vec::new();
        for (node, logical) in graph.iter() {
            let input = chained_edge(graph, node).map(|edge| (places[edge.from.0], edge.output));
            let vertex = match input {
                Some(((vertex, _), _)) => vertex,
                None => {
                    let parallelism = logical.parallelism;
                    vertices.push(JobVertex { name: String::new(), parallelism, chain: Vec::new() });
                    VertexIndex(vertices.len() - 1)
                }
            };
            let input = input.map(|((_, from), output)| ChainInput { from, output });
            let JobVertex { name, chain, .. } = &mut vertices[vertex.0];
            name.push_str(if chain.is_empty() { "" } else { " -> " });
            name.push_str(&logical.name);
            places.push((vertex, chain.len()));
            chain.push(ChainedNode { node, input });
        }
        let mut edges: Vec<JobEdge> =
            graph.edges.iter().filter_map(|e| exchange(graph, &places, e)).collect();
        edges.sort_by_key(|e| (e.from, e.chained));
        Self { vertices, edges }
    }

    /// The vertex at an index of this graph.
    pub fn vertex(&self, index: VertexIndex) -> &JobVertex {
        &self.vertices[index.0]
    }

    /// The exchanges into a vertex.
    pub fn edges_into(&self, vertex: VertexIndex) -> impl Iterator<Item = (EdgeIndex, &JobEdge)> {
        self.edges.iter().enumerate().filter(move |(_, e)| e.to == vertex).map(|(i, e)| (EdgeIndex(i), e))
    }

    /// The exchanges out of a vertex.
    pub fn edges_out_of(&self, vertex: VertexIndex) -> impl Iterator<Item = (EdgeIndex, &JobEdge)> {
        self.edges.iter().enumerate().filter(move |(_, e)| e.from == vertex).map(|(i, e)| (EdgeIndex(i), e))
    }
}

impl JobVertex {
    /// The node that reads the vertex's inputs.
    pub fn head(&self) -> NodeIndex {
        self.chain[0].node
    }
}

/// The edge by which a node joins the chain of its input, if it can.
fn chained_edge(graph: &LogicalGraph, node: NodeIndex) -> Option<&LogicalEdge> {
    let mut edges = graph.edges_into(node);
    let (edge, other) = (edges.next()?, edges.next());
    let (from, to) = (graph.node(edge.from), graph.node(node));
    let chains = other.is_none()
        && edge.partitioning == Partitioning::Forward
        && from.parallelism == to.parallelism
        && from.chaining.with_output
        && to.chaining.with_input;
    chains.then_some(edge)
}

fn exchange(graph: &LogicalGraph, places: &[(VertexIndex, usize)], edge: &LogicalEdge) -> Option<JobEdge> {
    let ((from, chained), (to, position)) = (places[edge.from.0], places[edge.to.0]);
    (position == 0).then(|| JobEdge {
        from,
        chained,
        output: edge.output,
        to,
        input: edge.input,
        partitioning: edge.partitioning.clone(),
        schema: graph.edge_schema(edge).clone(),
    })
}
