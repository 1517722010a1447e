//! A subtask: the loop that takes control mail first, then one element, through the chain, into the outputs.
//!
//! It gives way to the slot's other subtasks after every batch. Before it waits it sends on whatever is held back, so
//! nothing waits for a batch to fill. Cancelling drops the loop's future, in the middle of a call if need be.

use std::{future::poll_fn, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use millstream_operator::{Assignment, SourceOperator, SourceProgress};
use millstream_types::MAX_WATERMARK;
use tokio::sync::watch;

use crate::{
    Chain, InputGate, Mail, Mailbox, SourceTask, SplitRequests, TaskError, gate::GateEvent,
    source::NoEnumerator,
};

/// Where a subtask's elements come from.
pub enum Input {
    /// Other subtasks.
    Gate(InputGate),
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
}

/// How a subtask has ended.
#[derive(Debug)]
pub enum SubtaskEnd {
    /// Its input has ended and everything has been passed on.
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
        let Subtask { input, mut chain, mut mailbox } = self;
        chain.open().await?;
        match input {
            Input::Gate(gate) => read_gate(gate, &mut chain, &mut mailbox).await?,
            Input::Source(source) => read_source(source, &mut chain, &mut mailbox).await?,
        }
        chain.end().await?;
        chain.close().await
    }
}

async fn read_gate(mut gate: InputGate, chain: &mut Chain, mailbox: &mut Mailbox) -> Result<(), TaskError> {
    loop {
        fire_processing_time(chain).await?;
        let next = poll_fn(|cx| gate.poll_next(cx));
        let event = match next.now_or_never() {
            Some(event) => event,
            None => {
                chain.flush().await?;
                let wakeup = until_wakeup(chain);
                tokio::select! {
                    biased;
                    Mail::Stop = mailbox.next() => continue,
                    event = poll_fn(|cx| gate.poll_next(cx)) => event,
                    () = wakeup => continue,
                }
            }
        };
        let event = event.map_err(|source| TaskError::Disconnected { subtask: chain.name(), source })?;
        match event {
            GateEvent::Batch(port, batch) => {
                chain.process(port, batch).await?;
                tokio::task::yield_now().await;
            }
            GateEvent::Watermark(watermark) => chain.watermark(watermark).await?,
            GateEvent::Idle(idle) => chain.idle(idle).await?,
            GateEvent::End => return Ok(()),
        }
    }
}

async fn read_source(source: SourceTask, chain: &mut Chain, mailbox: &mut Mailbox) -> Result<(), TaskError> {
    let SourceTask { mut operator, splits } = source;
    let mut in_split = false;
    loop {
        if mailbox.try_next() == Some(Mail::Stop) {
            break;
        }
        fire_processing_time(chain).await?;
        if !in_split {
            match next_split(&mut *operator, &splits, chain).await? {
                NextSplit::Started => in_split = true,
                NextSplit::Finished => break,
                NextSplit::Later(time) => {
                    chain.source_status(&mut *operator, true).await?;
                    if wait(time, chain, mailbox).await? == Some(Mail::Stop) {
                        break;
                    }
                }
            }
            continue;
        }
        match chain.read(&mut *operator).await? {
            SourceProgress::Read => tokio::task::yield_now().await,
            SourceProgress::SplitFinished => in_split = false,
            SourceProgress::Wait(time) => {
                if wait(time, chain, mailbox).await? == Some(Mail::Stop) {
                    break;
                }
            }
        }
    }
    chain.watermark(MAX_WATERMARK).await
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
async fn wait(time: Duration, chain: &mut Chain, mailbox: &mut Mailbox) -> Result<Option<Mail>, TaskError> {
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
