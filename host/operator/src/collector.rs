//! Where an operator puts what it makes; the chain takes it from there.

use std::collections::VecDeque;

use millstream_types::{Barrier, Batch, StreamElement};

/// The elements that an operator has made and the chain has not yet passed on, in order.
///
/// A batch goes to one output port; everything else goes to all of them.
#[derive(Debug, Default)]
pub struct Collector {
    elements: VecDeque<(usize, StreamElement)>,
}

impl Collector {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends rows to a port; none are not sent.
    pub fn emit(&mut self, port: usize, batch: Batch) {
        if !batch.is_empty() {
            self.elements.push_back((port, StreamElement::Batch(batch)));
        }
    }

    /// Sends a watermark on.
    pub fn watermark(&mut self, watermark: i64) {
        self.elements.push_back((0, StreamElement::Watermark(watermark)));
    }

    /// Sends a barrier on.
    pub fn barrier(&mut self, barrier: Barrier) {
        self.elements.push_back((0, StreamElement::Barrier(barrier)));
    }

    /// Says whether rows are to be expected.
    pub fn status(&mut self, idle: bool) {
        self.elements.push_back((0, if idle { StreamElement::Idle } else { StreamElement::Active }));
    }

    /// The next element with its port.
    pub fn pop(&mut self) -> Option<(usize, StreamElement)> {
        self.elements.pop_front()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}
