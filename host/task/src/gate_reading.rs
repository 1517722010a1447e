//! The loop of a subtask that reads from other subtasks.

use std::future::poll_fn;

use futures_util::FutureExt;

use crate::{
    Chain, InputGate, Mail, Mailbox, TaskError,
    checkpoint::Checkpoints,
    gate::GateEvent,
    stop::{AfterStop, stand_still},
    subtask::ReadingEnd,
    wakeup::{fire_processing_time, until_wakeup},
};

/// Reads from other subtasks.
pub(crate) struct GateReading {
    pub(crate) gate: InputGate,
    /// Whether the operators have processed the end of input before.
    pub(crate) ended: bool,
}

impl GateReading {
    /// Reads to the end of input and has it processed, or until the job has stopped.
    pub(crate) async fn run(
        mut self,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<ReadingEnd, TaskError> {
        loop {
            while let Some(mail) = mailbox.try_next() {
                self.handle(mail, chain, checkpoints).await?;
            }
            if !self.ended {
                fire_processing_time(chain).await?;
            }
            let next = poll_fn(|cx| self.gate.poll_next(cx));
            let event = match next.now_or_never() {
                Some(event) => event,
                None => {
                    chain.flush().await?;
                    let wakeup = until_wakeup(chain);
                    tokio::select! {
                        biased;
                        mail = mailbox.next() => {
                            self.handle(mail, chain, checkpoints).await?;
                            continue;
                        }
                        event = poll_fn(|cx| self.gate.poll_next(cx)) => event,
                        () = wakeup, if !self.ended => continue,
                    }
                }
            };
            let event = event.map_err(|source| TaskError::Disconnected { subtask: chain.name(), source })?;
            match event {
                // What can still come is the end.
                GateEvent::Batch(..) | GateEvent::Watermark(_) | GateEvent::Idle(_) if self.ended => {}
                GateEvent::Batch(port, batch) => {
                    chain.process(port, batch).await?;
                    tokio::task::yield_now().await;
                }
                GateEvent::Watermark(watermark) => chain.watermark(watermark).await?,
                GateEvent::Idle(idle) => chain.idle(idle).await?,
                GateEvent::Barrier(barrier, alignment) => {
                    let stop = barrier.stop.then_some(barrier.id);
                    checkpoints.take(barrier, alignment, chain).await?;
                    let Some(stop) = stop else { continue };
                    let gate = Some(&mut self.gate);
                    if stand_still(stop, chain, mailbox, checkpoints, gate).await? == AfterStop::Stopped {
                        return Ok(ReadingEnd::Stop);
                    }
                }
                GateEvent::GivenUp(id) => checkpoints.decline(id),
                GateEvent::End => {
                    if self.ended {
                        chain.pass_end().await?
                    } else {
                        chain.end().await?
                    }
                    return Ok(ReadingEnd::Input);
                }
            }
        }
    }

    async fn handle(
        &mut self,
        mail: Mail,
        chain: &mut Chain,
        checkpoints: &mut Checkpoints,
    ) -> Result<(), TaskError> {
        match mail {
            Mail::Stop => Ok(()),
            Mail::Checkpoint(barrier) => {
                checkpoints.announce(barrier);
                Ok(())
            }
            Mail::Complete { checkpoint, .. } => chain.checkpoint_complete(checkpoint).await,
            Mail::Abort(id) => {
                checkpoints.abort(id);
                self.gate.abort(id);
                Ok(())
            }
        }
    }
}
