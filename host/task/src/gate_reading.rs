//! The loop of a subtask that reads from other subtasks.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use millstream_operator::Clock;
use millstream_types::Batch;

use crate::{
    Chain, InputGate, Mail, Mailbox, TaskError,
    checkpoint::Checkpoints,
    gate::GateEvent,
    overdraft::{Overdraft, unless_overtaken},
    stop::{AfterStop, stand_still},
    subtask::ReadingEnd,
    wakeup::{fire_processing_time, until_wakeup},
};

/// Reads from other subtasks.
pub(crate) struct GateReading {
    gate: InputGate,
    /// Whether the operators have processed the end of input before.
    ended: bool,
    clock: Arc<dyn Clock>,
    overdraft: Rc<Overdraft>,
}

impl GateReading {
    /// Reads from a gate for a chain, whose operators may have processed the end of input before.
    pub(crate) fn new(gate: InputGate, ended: bool, chain: &Chain) -> Self {
        Self { gate, ended, clock: chain.head().clock.clone(), overdraft: chain.overdraft() }
    }

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
            self.report(checkpoints);
            if chain.is_behind() && !self.gate.has_barrier() {
                self.watching(pin!(chain.catch_up()), mailbox, checkpoints).await?;
                continue;
            }
            if !self.ended {
                self.watching(pin!(fire_processing_time(chain)), mailbox, checkpoints).await?;
            }
            let Some(event) = self.next(chain, mailbox, checkpoints).await? else { continue };
            match event {
                // What can still come is the end.
                GateEvent::Watermark(_) | GateEvent::Idle(_) if self.ended => {}
                GateEvent::Batch(_, batch) if self.ended => return Err(late(chain, &batch)),
                GateEvent::Batch(port, batch) => {
                    self.watching(pin!(chain.process(port, batch)), mailbox, checkpoints).await?;
                    tokio::task::yield_now().await;
                }
                GateEvent::Watermark(watermark) => {
                    self.watching(pin!(chain.watermark(watermark)), mailbox, checkpoints).await?;
                }
                GateEvent::Idle(idle) => self.watching(pin!(chain.idle(idle)), mailbox, checkpoints).await?,
                GateEvent::Barrier(barrier, alignment) => {
                    let stop = barrier.stop.then_some(barrier.id);
                    self.report(checkpoints);
                    checkpoints.take(barrier, alignment, chain).await?;
                    let Some(stop) = stop else { continue };
                    let gate = Some(&mut self.gate);
                    if stand_still(stop, chain, mailbox, checkpoints, gate).await? == AfterStop::Stopped {
                        return Ok(ReadingEnd::Stop);
                    }
                }
                GateEvent::Overtakes(barrier) => checkpoints.overtaken(barrier, chain).await?,
                GateEvent::GivenUp(id) => checkpoints.decline(id),
                GateEvent::End => {
                    self.report(checkpoints);
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

    /// The next event; none if there is something else to be done first. What is held back goes out before it waits.
    async fn next(
        &mut self,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<Option<GateEvent>, TaskError> {
        let event = match poll_fn(|cx| self.gate.poll_event(cx, &*self.clock)).now_or_never() {
            Some(event) => event,
            None => {
                self.watching(pin!(chain.flush()), mailbox, checkpoints).await?;
                if chain.is_behind() {
                    return Ok(None);
                }
                let (wakeup, due) = (until_wakeup(chain), after(self.gate.due_in(&*self.clock)));
                tokio::select! {
                    biased;
                    mail = mailbox.next() => {
                        self.handle(mail, chain, checkpoints).await?;
                        return Ok(None);
                    }
                    event = poll_fn(|cx| self.gate.poll_event(cx, &*self.clock)) => event,
                    () = due => return Ok(None),
                    () = wakeup, if !self.ended => return Ok(None),
                }
            }
        };
        event.map_err(|source| TaskError::Disconnected { subtask: chain.name(), source })
    }

    /// Does some work of the chain, with an eye on barriers that overtake while that waits.
    async fn watching<W: Future>(
        &mut self,
        work: Pin<&mut W>,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> W::Output {
        let overdraft = self.overdraft.clone();
        let look = |cx: &mut std::task::Context<'_>| {
            mailbox.look(cx).for_each(|barrier| self.gate.expect(barrier));
            self.gate.look_ahead(cx, &*self.clock);
            self.report(checkpoints);
            self.gate.due_in(&*self.clock)
        };
        unless_overtaken(work, &overdraft, look).await
    }

    /// Passes on what barriers have overtaken.
    fn report(&mut self, checkpoints: &mut Checkpoints) {
        while let Some(recorded) = self.gate.take_recorded() {
            checkpoints.recorded(recorded);
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
                self.gate.expect(&barrier);
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

/// Waits so long; for ever if there is nothing to wait for.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Rows for a subtask that had processed the end of its input. They are in no state, so they would be lost.
fn late(chain: &Chain, batch: &Batch) -> TaskError {
    let rows = batch.rows();
    let problem = format!("it had processed the end of its input, and {rows} rows have come to it since");
    TaskError::Restore { subtask: chain.name(), source: problem.into() }
}
