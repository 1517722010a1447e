//! What happens to rows before they come into windows, and to those that come too late.

use arrow_array::{ArrayRef, UInt32Array};
use millstream_operator::{Collector, OperatorError};
use millstream_types::{Batch, Clock, EncodedKeys, encode_keys};

use super::{WindowAssigner, WindowSpec, calls::WindowCalls};
use crate::{ProjectionSpec, keyed::refused_keys, project::without, time_range::refused_times};

/// The way of rows into windows.
pub(super) struct Entry {
    input: ProjectionSpec,
    key: Vec<usize>,
    needs_times: bool,
    late_port: Option<usize>,
}

impl Entry {
    pub(super) fn new(spec: &WindowSpec) -> Self {
        Self {
            input: spec.input.clone(),
            key: spec.key.iter().map(|k| k.index).collect(),
            needs_times: spec.clock == Clock::Event && spec.assigner != WindowAssigner::Global,
            late_port: spec.late_port,
        }
    }

    /// The rows that can be put into windows; the others are refused.
    pub(super) fn accept(
        &self,
        batch: Batch,
        calls: &WindowCalls,
        out: &mut Collector,
    ) -> Result<Batch, OperatorError> {
        let row_errors = calls.output().row_errors();
        let refused = refused_keys(&batch, &self.key);
        row_errors.refuse(&batch, &refused, out)?;
        let batch = if refused.is_empty() { batch } else { without(&batch, &refused) };
        let (kept, refused) = self.input.split_nulls(batch.clone());
        row_errors.refuse(&batch, &refused, out)?;
        if !self.needs_times {
            return Ok(kept);
        }
        let refused = refused_times(kept.times(), || NO_EVENT_TIME.to_owned());
        row_errors.refuse(&kept, &refused, out)?;
        Ok(if refused.is_empty() { kept } else { without(&kept, &refused) })
    }

    /// Encodes the keys of rows.
    pub(super) fn encode(&self, batch: &Batch, keys: &mut EncodedKeys) -> Result<(), OperatorError> {
        let columns: Vec<&ArrayRef> = self.key.iter().map(|&index| batch.column(index)).collect();
        Ok(encode_keys(&columns, batch.rows(), keys)?)
    }

    /// Sends rows that are late for all windows of theirs to the late port, or counts them.
    pub(super) fn emit_late(&self, batch: &Batch, rows: Vec<u32>, calls: &WindowCalls, out: &mut Collector) {
        match self.late_port {
            _ if rows.is_empty() => {}
            Some(port) => out.emit(port, batch.take(&UInt32Array::from(rows))),
            None => calls.calls().add(|m| &m.late_dropped, rows.len()),
        }
    }
}

const NO_EVENT_TIME: &str =
    "the row has no event time: set `time` on the source or an operator before the window";
