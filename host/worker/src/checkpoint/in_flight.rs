//! What a barrier has overtaken, as parts of a snapshot.

use std::collections::BTreeMap;

use millstream_state::{ChannelContent, encode_channel};
use millstream_task::{InFlight, Overtaken, TaskSnapshot};
use millstream_types::{OperatorId, StateChunk, StateForm, StatePart};

use crate::edges::EdgeName;

/// Makes parts of the operators' state of what was under way: what had been sent becomes one of the operator that reads,
/// what had not one of the operator that writes. It takes a copy of all that, so it is for a thread that may take its time.
pub(super) fn with_in_flight(mut snapshot: TaskSnapshot, edges: &[EdgeName]) -> TaskSnapshot {
    let Some(InFlight { received, unsent }) = snapshot.in_flight.take() else { return snapshot };
    for (edge, part) in parts(received, edges) {
        add(&mut snapshot, &edge.to, part);
    }
    for (edge, part) in parts(unsent, edges) {
        add(&mut snapshot, &edge.from, part);
    }
    snapshot
}

/// A part an edge, with a chunk for each channel that had something under way.
fn parts(overtaken: Vec<Overtaken>, edges: &[EdgeName]) -> Vec<(&EdgeName, StatePart)> {
    let mut by_edge: BTreeMap<u32, StatePart> = BTreeMap::new();
    for Overtaken { channel, elements } in overtaken {
        let edge = &edges[channel.edge as usize];
        let columns = edge.schema.columns();
        let part = by_edge.entry(channel.edge).or_insert_with(|| StatePart {
            columns: columns.clone(),
            ..StatePart::plain(&edge.name, StateForm::Overtaken, Vec::new())
        });
        if !elements.is_empty() {
            let content = ChannelContent { from: channel.from, to: channel.to, elements };
            part.chunks.push(StateChunk::item(encode_channel(&content, &columns)));
        }
    }
    by_edge.into_iter().map(|(edge, part)| (&edges[edge as usize], part)).collect()
}

fn add(snapshot: &mut TaskSnapshot, operator: &OperatorId, part: StatePart) {
    // It is the head of the subtask's chain, or one of the chain that sends.
    if let Some((_, parts)) = snapshot.operators.iter_mut().find(|(id, _)| id == operator) {
        parts.push(part);
    }
}
