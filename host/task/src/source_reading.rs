//! The loop of a subtask that reads from the outside.

use std::{
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use millstream_operator::{Assignment, Clock, SourceOperator, SourceProgress, Split};
use millstream_types::{MAX_WATERMARK, SnapshotRequest, StatePart};

use crate::{
    Chain, Mail, Mailbox, SplitRequests, TaskError,
    checkpoint::{Checkpoints, Moment, due_in, pass},
    in_flight::InFlight,
    overdraft::{Overdraft, unless_overtaken},
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
        if end == ReadingEnd::Stop {
            return Ok(end);
        }
        let watch = Watch::of(chain);
        watch.during(pin!(chain.watermark(MAX_WATERMARK)), mailbox).await?;
        while chain.is_behind() {
            while let Some(mail) = mailbox.try_next() {
                if self.handle(mail, chain, mailbox, checkpoints).await? == Some(ReadingEnd::Stop) {
                    return Ok(ReadingEnd::Stop);
                }
            }
            watch.during(pin!(chain.catch_up()), mailbox).await?;
        }
        chain.end().await?;
        Ok(end)
    }

    async fn read(
        &mut self,
        chain: &mut Chain,
        mailbox: &mut Mailbox,
        checkpoints: &mut Checkpoints,
    ) -> Result<ReadingEnd, TaskError> {
        let watch = Watch::of(chain);
        loop {
            while let Some(mail) = mailbox.try_next() {
                if let Some(end) = self.handle(mail, chain, mailbox, checkpoints).await? {
                    return Ok(end);
                }
            }
            if chain.is_behind() {
                watch.during(pin!(chain.catch_up()), mailbox).await?;
                continue;
            }
            watch.during(pin!(fire_processing_time(chain)), mailbox).await?;
            let wait = if self.in_split {
                match watch.during(pin!(chain.read(&mut *self.operator)), mailbox).await? {
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
                        watch.during(pin!(chain.source_status(&mut *self.operator, true)), mailbox).await?;
                        time
                    }
                }
            };
            if let Some(mail) = until_mail(wait, &watch, chain, mailbox).await?
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
                let unsent = pass(barrier, chain).await?;
                let in_flight = unsent.map(|unsent| InFlight { unsent, ..InFlight::default() });
                let head = self.snapshot(id, chain)?;
                checkpoints.snapshot(Moment { in_flight, ..Moment::running(request) }, head, chain).await?;
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

/// Keeps an eye on barriers that overtake.
struct Watch {
    overdraft: Rc<Overdraft>,
    clock: Arc<dyn Clock>,
}

impl Watch {
    fn of(chain: &Chain) -> Self {
        Self { overdraft: chain.overdraft(), clock: chain.head().clock.clone() }
    }

    /// Does some work of the chain. While that waits, the next checkpoint in the mail may overtake.
    async fn during<W: Future>(&self, work: Pin<&mut W>, mailbox: &mut Mailbox) -> W::Output {
        let look = |cx: &mut std::task::Context<'_>| {
            let due = mailbox.look(cx).next()?.overtakes_at()?;
            due_in(due, &*self.clock)
        };
        unless_overtaken(work, &self.overdraft, look).await
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
    watch: &Watch,
    chain: &mut Chain,
    mailbox: &mut Mailbox,
) -> Result<Option<Mail>, TaskError> {
    watch.during(pin!(chain.flush()), mailbox).await?;
    if chain.is_behind() {
        return Ok(None);
    }
    let wakeup = until_wakeup(chain);
    tokio::select! {
        biased;
        mail = mailbox.next() => Ok(Some(mail)),
        () = tokio::time::sleep(time) => Ok(None),
        () = wakeup => Ok(None),
    }
}
