//! A subtask: the loop that takes control mail first, then one element, through the chain, into the outputs.
//!
//! It gives way to the slot's other subtasks after every batch. Before it waits it sends on whatever is held back, so
//! nothing waits for a batch to fill. Cancelling drops the loop's future, in the middle of a call if need be.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use millstream_types::StatePart;
use tokio::sync::watch;

use crate::{
    Chain, CheckpointLink, InputGate, Mail, Mailbox, PiecesOf, Resent, SourceTask, TaskError,
    checkpoint::{Checkpoints, Moment},
    gate_reading::GateReading,
    source_reading::{EndedSource, SourceReading},
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
    /// What comes behind that, piece by piece.
    pub pieces: Vec<PiecesOf>,
    /// What was under way and is to be sent, or processed, before anything else.
    pub resent: Vec<Resent>,
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
        let Restore { ended, operators, pieces, resent } = restore.unwrap_or_default();
        chain.restore(operators).await?;
        chain.restore_pieces(pieces).await?;
        chain.open().await?;
        chain.resend(resent).await?;
        let (reading_end, source) = match input {
            Input::Gate(gate) => {
                let reading = GateReading::new(*gate, ended, &chain);
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
pub(crate) enum ReadingEnd {
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

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}
