//! What a subtask does at a barrier at which the job stops: nothing, until it is told what becomes of the snapshot.

use crate::{Chain, InputGate, Mail, Mailbox, TaskError, checkpoint::Checkpoints};

/// What follows after the snapshot at which the job was to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterStop {
    /// It is complete.
    Stopped,
    /// It was given up.
    GoesOn,
    /// It was given up, and meanwhile sources have been told to read no further.
    EndsInput,
}

/// Stands still at a barrier at which the job stops, until it is known what becomes of its snapshot.
pub(crate) async fn stand_still(
    stop: u64,
    chain: &mut Chain,
    mailbox: &mut Mailbox,
    checkpoints: &mut Checkpoints,
    mut gate: Option<&mut InputGate>,
) -> Result<AfterStop, TaskError> {
    let mut after = AfterStop::GoesOn;
    loop {
        match mailbox.next().await {
            Mail::Stop => after = AfterStop::EndsInput,
            Mail::Checkpoint(barrier) => checkpoints.announce(barrier),
            Mail::Complete { checkpoint, last } => {
                chain.checkpoint_complete(checkpoint).await?;
                if last {
                    return Ok(AfterStop::Stopped);
                }
            }
            Mail::Abort(id) => {
                checkpoints.abort(id);
                if let Some(gate) = &mut gate {
                    gate.abort(id);
                }
                if id == stop {
                    return Ok(after);
                }
            }
        }
    }
}
