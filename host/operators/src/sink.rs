//! The sink operator: hands rows to a connector's writer.
//!
//! Where a job takes checkpoints, what is written becomes visible by them: at a barrier the writer closes what it has,
//! and commits that once the checkpoint is complete. What comes before the end of input is committed by the last
//! checkpoint. Without checkpoints the end of input makes it visible.

use async_trait::async_trait;
use millstream_operator::{Collector, Operator, OperatorContext, OperatorError, Progress, SinkWriter};
use millstream_types::{Barrier, Batch, SnapshotRequest, StateChunk, StateForm, StatePart};

use crate::{
    kept::PREPARED,
    subtask_state::{nothing_left, take_parts},
};

/// A sink operator with everything resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkSpec {
    /// How long the writer may hold back what it has, in milliseconds of processing time.
    pub flush_after: i64,
}

impl Default for SinkSpec {
    fn default() -> Self {
        Self { flush_after: 200 }
    }
}

/// Writes all rows of its input.
pub struct SinkOperator {
    spec: SinkSpec,
    writer: Box<dyn SinkWriter>,
    ctx: OperatorContext,
    /// When the writer is told to hand on what it holds back: some time after the first row that it may hold.
    flush_at: Option<i64>,
}

impl SinkOperator {
    /// An operator for the subtask of `ctx`.
    pub fn new(spec: SinkSpec, writer: Box<dyn SinkWriter>, ctx: OperatorContext) -> Self {
        Self { spec, writer, ctx, flush_at: None }
    }
}

#[async_trait(?Send)]
impl Operator for SinkOperator {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        _out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if self.flush_at.is_none() {
            self.flush_at = Some(self.ctx.clock.now().saturating_add(self.spec.flush_after));
        }
        Ok(self.writer.write(batch).await?)
    }

    async fn processing_time(&mut self, now: i64, _out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.flush_at.take_if(|at| *at <= now).is_some() {
            self.writer.flush().await?;
        }
        Ok(Progress::Done)
    }

    fn next_wakeup(&self) -> Option<i64> {
        self.flush_at
    }

    async fn before_barrier(
        &mut self,
        _barrier: &Barrier,
        _out: &mut Collector,
    ) -> Result<(), OperatorError> {
        self.flush_at = None;
        Ok(self.writer.flush().await?)
    }

    async fn end_of_input(&mut self, _out: &mut Collector) -> Result<Progress, OperatorError> {
        self.flush_at = None;
        if !self.ctx.checkpoints {
            self.writer.finish().await?;
        }
        Ok(Progress::Done)
    }

    async fn snapshot(&mut self, request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        let prepared = self.writer.prepare(request.checkpoint).await?;
        let chunks: Vec<_> = prepared.into_iter().map(StateChunk::item).collect();
        let part = StatePart::plain(PREPARED, StateForm::Items, chunks);
        Ok(if part.is_empty() { Vec::new() } else { vec![part] })
    }

    async fn restore(&mut self, mut parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let prepared = take_parts(PREPARED, StateForm::Items, &mut parts);
        let chunks = prepared.into_iter().flat_map(|part| part.chunks);
        self.writer.restore(chunks.map(|chunk| chunk.bytes).collect()).await?;
        Ok(nothing_left(parts)?)
    }

    async fn checkpoint_complete(&mut self, checkpoint: u64) -> Result<(), OperatorError> {
        Ok(self.writer.commit(checkpoint).await?)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        if self.ctx.checkpoints {
            self.writer.finish().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc, sync::Arc};

    use millstream_operator::{ConnectorError, ManualClock};

    use super::*;
    use crate::test_support::{context_with_clock, end_of_input, process, processing_time, show, text_batch};

    /// Notes what it is told.
    struct Notes(Rc<RefCell<Vec<String>>>);

    #[async_trait(?Send)]
    impl SinkWriter for Notes {
        async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
            self.0.borrow_mut().push(show(&batch).trim_end().to_owned());
            Ok(())
        }

        async fn flush(&mut self) -> Result<(), ConnectorError> {
            self.0.borrow_mut().push("flush".to_owned());
            Ok(())
        }

        async fn finish(&mut self) -> Result<(), ConnectorError> {
            self.0.borrow_mut().push("finish".to_owned());
            Ok(())
        }
    }

    #[test]
    fn rows_are_written_flushed_in_time_and_finished() {
        let notes = Rc::new(RefCell::new(Vec::new()));
        let clock = Arc::new(ManualClock::new(1000));
        let ctx = context_with_clock("out", clock.clone());
        let mut sink = SinkOperator::new(SinkSpec { flush_after: 50 }, Box::new(Notes(notes.clone())), ctx);
        process(&mut sink, text_batch(&["n:int64", "@5 1"])).expect("writes");
        clock.set(1040);
        process(&mut sink, text_batch(&["n:int64", "@6 2"])).expect("writes");
        assert_eq!(sink.next_wakeup(), Some(1050), "from the first row on");
        processing_time(&mut sink, 1050).expect("flushes");
        assert_eq!(sink.next_wakeup(), None);
        end_of_input(&mut sink).expect("finishes");
        assert_eq!(*notes.borrow(), ["@5 1", "@6 2", "flush", "finish"]);
    }
}
