//! What connects subtasks with whoever coordinates them, as messages between processes.

use millstream_control::{
    ConnectorFailure, NoticeMessage, ParticipationMessage, SplitAnswer, StoredMessage, StoredMessageError,
    TaskFailure,
};
use millstream_operator::{Assignment, ConnectorError, Whose};
use millstream_storage::{SnapshotFolder, StorageError};
use millstream_task::{SubtaskEnd, TaskError};
use millstream_types::MaxParallelism;

use crate::{Notice, Participation, status::in_full};

/// A notice for another process.
pub fn notice_message(notice: Notice) -> NoticeMessage {
    match notice {
        Notice::Triggered { barrier, folder } => NoticeMessage::Triggered(barrier, folder.name()),
        Notice::Complete { checkpoint, last } => NoticeMessage::Complete { checkpoint, last },
        Notice::Aborted(checkpoint) => NoticeMessage::Aborted(checkpoint),
        Notice::Stop => NoticeMessage::Stop,
    }
}

/// A notice from another process. The error is about the place of a checkpoint, which cannot be used here.
pub(crate) fn notice(message: NoticeMessage) -> Result<Notice, StorageError> {
    Ok(match message {
        NoticeMessage::Triggered(barrier, location) => {
            Notice::Triggered { barrier, folder: SnapshotFolder::at(&location)? }
        }
        NoticeMessage::Complete { checkpoint, last } => Notice::Complete { checkpoint, last },
        NoticeMessage::Aborted(checkpoint) => Notice::Aborted(checkpoint),
        NoticeMessage::Stop => Notice::Stop,
    })
}

pub(crate) fn participation_message(
    participation: &Participation,
    max_parallelism: MaxParallelism,
) -> ParticipationMessage {
    match participation {
        Participation::Stored { checkpoint, stored } => {
            ParticipationMessage::Stored(*checkpoint, StoredMessage::encode(max_parallelism, stored))
        }
        Participation::Declined { checkpoint, reason } => {
            ParticipationMessage::Declined(*checkpoint, reason.clone())
        }
        Participation::Ended => ParticipationMessage::Ended,
    }
}

/// What a participant in another process comes to.
pub fn participation(message: ParticipationMessage) -> Result<Participation, StoredMessageError> {
    Ok(match message {
        ParticipationMessage::Stored(checkpoint, stored) => {
            Participation::Stored { checkpoint, stored: stored.decode()? }
        }
        ParticipationMessage::Declined(checkpoint, reason) => Participation::Declined { checkpoint, reason },
        ParticipationMessage::Ended => Participation::Ended,
    })
}

/// An answer for a reader in another process; none if nobody hands out splits any more.
pub fn split_answer(
    answer: Option<Result<Assignment, ConnectorError>>,
) -> Result<SplitAnswer, ConnectorFailure> {
    match answer {
        None => Ok(SplitAnswer::Gone),
        Some(Ok(Assignment::Splits(splits))) => Ok(SplitAnswer::Splits(splits)),
        Some(Ok(Assignment::Later(wait))) => Ok(SplitAnswer::Later(wait)),
        Some(Ok(Assignment::Finished)) => Ok(SplitAnswer::Finished),
        Some(Err(error)) => {
            let external = error.whose == Whose::External;
            Err(ConnectorFailure { message: in_full(&error), external })
        }
    }
}

/// What a reader is told; none if nobody hands out splits any more.
pub(crate) fn assignment(
    answer: Result<SplitAnswer, ConnectorFailure>,
) -> Option<Result<Assignment, ConnectorError>> {
    Some(match answer {
        Ok(SplitAnswer::Splits(splits)) => Ok(Assignment::Splits(splits)),
        Ok(SplitAnswer::Later(wait)) => Ok(Assignment::Later(wait)),
        Ok(SplitAnswer::Finished) => Ok(Assignment::Finished),
        Ok(SplitAnswer::Gone) => return None,
        Err(ConnectorFailure { message, external }) => {
            let whose = if external { Whose::External } else { Whose::User };
            Err(ConnectorError { message, whose, source: None })
        }
    })
}

pub(crate) fn end_message(end: SubtaskEnd) -> Result<(), TaskFailure> {
    match end {
        SubtaskEnd::Finished => Ok(()),
        SubtaskEnd::Cancelled => Err(TaskFailure::Cancelled),
        SubtaskEnd::Failed(error) => Err(TaskFailure::Failed {
            message: in_full(&error),
            consequence: error.is_consequence(),
            external: error.is_external(),
        }),
    }
}

/// How a subtask in another process has ended.
pub fn end_of_subtask(end: Result<(), TaskFailure>, worker: &str) -> SubtaskEnd {
    match end {
        Ok(()) => SubtaskEnd::Finished,
        Err(TaskFailure::Cancelled) => SubtaskEnd::Cancelled,
        Err(TaskFailure::Failed { message, consequence, external }) => {
            SubtaskEnd::Failed(TaskError::Elsewhere {
                worker: worker.to_owned(),
                message,
                consequence,
                external,
            })
        }
    }
}
