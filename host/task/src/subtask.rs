//! A subtask: the loop that takes control mail first, then one element, through the chain, into the outputs.
//!
//! It gives way to the slot's other subtasks after every batch. Before it waits it sends on whatever is held back, so
//! nothing waits for a batch to fill. Cancelling drops the loop's future, in the middle of a call if need be.

use std::{future::poll_fn, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use millstream_operator::{Assignment, SourceOperator, SourceProgress, Split};
use millstream_types::{MAX_WATERMARK, SnapshotRequest, StatePart};
use tokio::sync::watch;

use crate::{
    Chain, CheckpointLink, InputGate, Mail, Mailbox, SourceTask, SplitRequests, TaskError,
    checkpoint::{Checkpoints, Moment},
    gate::GateEvent,
    source::{NoEnumerator, splits_part},
    stop::{AfterStop, stand_still},
};

/// Where a subtask's elements come from.
pub enum Input {
    /// Other subtasks.
    Gate(Box<InputGate>),
    /// The outside.
    Source(SourceTask),
}

/// One parallel part of a vertex, ready to run.
pub struct Subtask {
    /// What it reads.
    pub input: Input,
    /// What it does.
    pub chain: Chain,
    /// Its control messages.
    pub mailbox: Mailbox,
    /// Where its snapshots go, if the job takes checkpoints.
    pub checkpoints: Option<CheckpointLink>,
    /// What it goes on from.
    pub restore: Option<Restore>,
}

/// What a snapshot has of a subtask.
#[derive(Debug, Default)]
pub struct Restore {
    /// Whether it has processed the end of its input: then its operators are asked for nothing but their state.
    pub ended: bool,
    /// The state of its operators, by their position in the chain. That of a source is its enumerator's business.
    pub operators: Vec<Vec<StatePart>>,
}

/// How a subtask has ended.
#[derive(Debug)]
pub enum SubtaskEnd {
    /// Its input has ended and everything has been passed on, or the job was stopped at a snapshot.
    Finished,
    /// It was told to give up.
    Cancelled,
    /// It could not go on.
    Failed(TaskError),
}

impl Subtask {
    /// Runs it to its end, or until `cancel` becomes true or its sender goes.
    pub async fn run(self, mut cancel: watch::Receiver<bool>) -> SubtaskEnd {
        let subtask = self.chain.name();
        let asked = cancel.clone();
        let cancelled = async move { drop(cancel.wait_for(|c| *c).await) };
        let work = AssertUnwindSafe(self.work()).catch_unwind();
        tokio::select! {
            biased;
            () = cancelled => SubtaskEnd::Cancelled,
            end = work => match end {
                Ok(Ok(())) => SubtaskEnd::Finished,
                // Cut off by a neighbour that noticed the same cancellation first.
                Ok(Err(error)) if error.is_consequence() && *asked.borrow() => SubtaskEnd::Cancelled,
                Ok(Err(error)) => SubtaskEnd::Failed(error),
                Err(panic) => SubtaskEnd::Failed(TaskError::Panicked { subtask, message: panic_text(&*panic) }),
            },
        }
    }

    async fn work(self) -> Result<(), TaskError> {
        let Subtask { input, mut chain, mut mailbox, checkpoints, restore } = self;
        let mut checkpoints = Checkpoints::new(checkpoints);
        let Restore { ended, operators } = restore.unwrap_or_default();
        chain.restore(operators).await?;
        chain.open().await?;
        let (reading_end, source) = match input {
            Input::Gate(gate) => {
                let reading = GateReading { gate: *gate, ended };
                (reading.run(&mut chain, &mut mailbox, &mut checkpoints).await?, None)
            }
            Input::Source(SourceTask { operator, splits }) => {
                let mut reading = SourceReading { operator, splits, in_split: false };
                let end = if ended {
                    chain.pass_end().await?;
                    ReadingEnd::Input
                } else {
                    reading.run(&mut chain, &mut mailbox, &mut checkpoints).await?
                };
                match checkpoints.enabled() {
                    true => (end, Some(reading.ended(&chain)?)),
                    false => (end, None),
                }
            }
        };
        if checkpoints.enabled() && reading_end == ReadingEnd::Input {
            take_part_to_the_end(source.as_ref(), &mut chain, &mut mailbox, &mut checkpoints).await?;
        }
        chain.close().await
    }
}

/// Why a subtask reads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadingEnd {
    /// The end of its input has been processed.
    Input,
    /// The job has stopped at a snapshot. What comes behind that is for whoever goes on from it.
    Stop,
}

/// Goes on taking part in checkpoints after the end of input, until the last one is complete.
async fn take_part_to_the_end(
    source: Option<&EndedSource>,
    chain: &mut Chain,
    mailbox: &mut Mailbox,
    checkpoints: &mut Checkpoints,
) -> Result<(), TaskError> {
    checkpoints.end(chain).await?;
    loop {
        match mailbox.next().await {
            Mail::Checkpoint(barrier) => {
                let head = source.map(|source| source.snapshot(barrier.id, chain)).unwrap_or_default();
                checkpoints.snapshot(Moment::ended(&barrier), head, chain).await?;
            }
            Mail::Complete { checkpoint, last } => {
                chain.checkpoint_complete(checkpoint).await?;
                if last {
                    return Ok(());
                }
            }
            Mail::Stop | Mail::Abort(_) => {}
        }
    }
}

/// Reads from other subtasks.
struct GateReading {
    gate: InputGate,
    /// Whether the operators have processed the end of input before.
    ended: bool,
}

impl GateReading {
    /// Reads to the end of input and has it processed, or until the job has stopped.
    async fn run(
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

/// Reads from the outside.
struct SourceReading {
    operator: Box<dyn SourceOperator>,
    splits: SplitRequests,
    in_split: bool,
}

impl SourceReading {
    /// Reads to the end of input, or until it is told to read no further, and has that processed; or until the job has
    /// stopped.
    async fn run(
        &mut self,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<ReadingEnd, TaskError> {
        let end = self.read(chain, mailbox, checkpoints).await?;
        if end == ReadingEnd::Input {
            chain.watermark(MAX_WATERMARK).await?;
            chain.end().await?;
        }
        Ok(end)
    }

    async fn read(
        &mut self,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<ReadingEnd, TaskError> {
        loop {
            while let Some(mail) = mailbox.try_next() {
                if let Some(end) = self.handle(mail, chain, mailbox, checkpoints).await? {
                    return Ok(end);
                }
            }
            fire_processing_time(chain).await?;
            let wait = if self.in_split {
                match chain.read(&mut *self.operator).await? {
                    SourceProgress::Read => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    SourceProgress::SplitFinished => {
                        self.in_split = false;
                        continue;
                    }
                    SourceProgress::Wait(time) => time,
                }
            } else {
                match next_split(&mut *self.operator, &self.splits, chain).await? {
                    NextSplit::Started => {
                        self.in_split = true;
                        continue;
                    }
                    NextSplit::Finished => return Ok(ReadingEnd::Input),
                    NextSplit::Later(time) => {
                        chain.source_status(&mut *self.operator, true).await?;
                        time
                    }
                }
            };
            if let Some(mail) = until_mail(wait, chain, mailbox).await?
                && let Some(end) = self.handle(mail, chain, mailbox, checkpoints).await?
            {
                return Ok(end);
            }
        }
    }

    /// Does what mail says; how the reading ends if it does.
    async fn handle(
        &mut self,
        mail: Mail,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<Option<ReadingEnd>, TaskError> {
        match mail {
            Mail::Stop => return Ok(Some(ReadingEnd::Input)),
            Mail::Checkpoint(barrier) => {
                let (request, stop) = (SnapshotRequest::at(&barrier), barrier.stop);
                let id = request.checkpoint;
                chain.barrier(barrier).await?;
                let head = self.snapshot(id, chain)?;
                checkpoints.snapshot(Moment::running(request), head, chain).await?;
                if stop {
                    return Ok(match stand_still(id, chain, mailbox, checkpoints, None).await? {
                        AfterStop::Stopped => Some(ReadingEnd::Stop),
                        AfterStop::GoesOn => None,
                        AfterStop::EndsInput => Some(ReadingEnd::Input),
                    });
                }
            }
            Mail::Complete { checkpoint, .. } => chain.checkpoint_complete(checkpoint).await?,
            Mail::Abort(_) => {}
        }
        Ok(None)
    }

    /// Tells the enumerator that the barrier has been passed, and says what is left to read.
    fn snapshot(&self, checkpoint: u64, chain: &Chain) -> Result<Vec<StatePart>, TaskError> {
        self.splits.passed(chain.head().subtask.0, checkpoint);
        Ok(vec![splits_part(&self.left(chain)?)])
    }

    fn left(&self, chain: &Chain) -> Result<Vec<Split>, TaskError> {
        self.operator.snapshot().map_err(|e| chain.head_failed(e))
    }

    /// Lets go of the reader: as long as it is there, others that are aligned with it may wait for it.
    fn ended(self, chain: &Chain) -> Result<EndedSource, TaskError> {
        let left = self.left(chain)?;
        Ok(EndedSource { splits: self.splits, left })
    }
}

/// What a source that reads no more takes part in checkpoints with.
struct EndedSource {
    splits: SplitRequests,
    /// There may be something, if the end was not the input's.
    left: Vec<Split>,
}

impl EndedSource {
    /// Tells the enumerator that the barrier has been passed, and says what is left to read.
    fn snapshot(&self, checkpoint: u64, chain: &Chain) -> Vec<StatePart> {
        self.splits.passed(chain.head().subtask.0, checkpoint);
        vec![splits_part(&self.left)]
    }
}

enum NextSplit {
    Started,
    Later(Duration),
    Finished,
}

/// Asks for a split and starts it.
async fn next_split(
    operator: &mut dyn SourceOperator,
    splits: &SplitRequests,
    chain: &Chain,
) -> Result<NextSplit, TaskError> {
    let asked = splits.next_split(chain.head().subtask.0).await;
    let assigned = asked.map_err(|NoEnumerator| TaskError::NoEnumerator { subtask: chain.name() })?;
    match assigned.map_err(|e| chain.head_failed(e.into()))? {
        Assignment::Later(time) => Ok(NextSplit::Later(time)),
        Assignment::Finished => Ok(NextSplit::Finished),
        Assignment::Splits(splits) => {
            let ids: Vec<_> = splits.iter().map(|split| &*split.id).collect();
            tracing::debug!(subtask = %chain.name(), splits = ids.join(", "), "reading");
            operator.start(splits).map_err(|e| chain.head_failed(e))?;
            Ok(NextSplit::Started)
        }
    }
}

/// Waits for `time`, or until there is mail or an operator's time has come.
async fn until_mail(
    time: Duration,
    chain: &mut Chain,
    mailbox: &mut Mailbox,
) -> Result<Option<Mail>, TaskError> {
    chain.flush().await?;
    let wakeup = until_wakeup(chain);
    tokio::select! {
        biased;
        mail = mailbox.next() => Ok(Some(mail)),
        () = tokio::time::sleep(time) => Ok(None),
        () = wakeup => Ok(None),
    }
}

async fn fire_processing_time(chain: &mut Chain) -> Result<(), TaskError> {
    match chain.next_wakeup() {
        None => Ok(()),
        Some(due) => {
            let now = chain.head().clock.now();
            if due <= now { chain.processing_time(now).await } else { Ok(()) }
        }
    }
}

/// Sleeps until the chain's next processing time; for ever if there is none.
fn until_wakeup(chain: &Chain) -> impl Future<Output = ()> + use<> {
    let time = chain.next_wakeup().map(|due| due.saturating_sub(chain.head().clock.now()).max(0));
    async move {
        match time {
            Some(millis) => tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await,
            None => std::future::pending().await,
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}
