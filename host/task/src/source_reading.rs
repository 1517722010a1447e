//! The loop of a subtask that reads from the outside.

use std::time::Duration;

use millstream_operator::{Assignment, SourceOperator, SourceProgress, Split};
use millstream_types::{MAX_WATERMARK, SnapshotRequest, StatePart};

use crate::{
    Chain, Mail, Mailbox, SplitRequests, TaskError,
    checkpoint::{Checkpoints, Moment},
    source::{NoEnumerator, splits_part},
    stop::{AfterStop, stand_still},
    subtask::ReadingEnd,
    wakeup::{fire_processing_time, until_wakeup},
};

/// Reads from the outside.
pub(crate) struct SourceReading {
    pub(crate) operator: Box<dyn SourceOperator>,
    pub(crate) splits: SplitRequests,
    pub(crate) in_split: bool,
}

impl SourceReading {
    /// Reads to the end of input, or until it is told to read no further, and has that processed; or until the job has
    /// stopped.
    pub(crate) async fn run(
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
    pub(crate) fn ended(self, chain: &Chain) -> Result<EndedSource, TaskError> {
        let left = self.left(chain)?;
        Ok(EndedSource { splits: self.splits, left })
    }
}

/// What a source that reads no more takes part in checkpoints with.
pub(crate) struct EndedSource {
    splits: SplitRequests,
    /// There may be something, if the end was not the input's.
    left: Vec<Split>,
}

impl EndedSource {
    /// Tells the enumerator that the barrier has been passed, and says what is left to read.
    pub(crate) fn snapshot(&self, checkpoint: u64, chain: &Chain) -> Vec<StatePart> {
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
