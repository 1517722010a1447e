//! What a participant of a checkpoint has stored, as a message. It is written as the metadata of a snapshot is, by the
//! code that reads that from disk, so it is checked in the same way.

use millstream_snapshot::{OperatorMetadata, SnapshotError, SnapshotKind, SnapshotMetadata, SubtaskMetadata};
use millstream_types::{MaxParallelism, OperatorId};
use serde::{Deserialize, Serialize};

/// The state that a participant has stored, by operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMessage(Vec<u8>);

/// What was received is no such message.
#[derive(Debug, thiserror::Error)]
pub enum StoredMessageError {
    /// It cannot be read.
    #[error("what a participant says that it has stored cannot be read: {0}")]
    Undecodable(#[from] SnapshotError),
    /// It is not of one participant.
    #[error("what a participant says that it has stored is of {0} subtasks of an operator")]
    Subtasks(usize),
}

impl StoredMessage {
    /// Writes it.
    pub fn encode(max_parallelism: MaxParallelism, stored: &[(OperatorId, SubtaskMetadata)]) -> Self {
        let operator = |(id, subtask): &(OperatorId, SubtaskMetadata)| OperatorMetadata {
            id: id.to_string(),
            key: Vec::new(),
            windows: String::new(),
            subtasks: vec![subtask.clone()],
            shared: Vec::new(),
        };
        let metadata = SnapshotMetadata {
            checkpoint: 0,
            kind: SnapshotKind::Checkpoint,
            job: String::new(),
            max_parallelism,
            triggered: 0,
            completed: 0,
            operators: stored.iter().map(operator).collect(),
            program: None,
        };
        Self(metadata.encode())
    }

    /// Reads it, by operator.
    pub fn decode(&self) -> Result<Vec<(OperatorId, SubtaskMetadata)>, StoredMessageError> {
        let metadata = SnapshotMetadata::decode(&self.0)?;
        let of_operator = |mut operator: OperatorMetadata| match operator.subtasks.pop() {
            Some(subtask) if operator.subtasks.is_empty() => Ok((OperatorId::new(operator.id), subtask)),
            Some(_) => Err(StoredMessageError::Subtasks(operator.subtasks.len() + 1)),
            None => Err(StoredMessageError::Subtasks(0)),
        };
        metadata.operators.into_iter().map(of_operator).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back_and_garbage_is_refused() {
        let subtask = SubtaskMetadata { ended: true, pause_micros: 7, ..SubtaskMetadata::default() };
        let stored = vec![(OperatorId::new("counts"), subtask.clone()), (OperatorId::new("out"), subtask)];
        let message = StoredMessage::encode(MaxParallelism::DEFAULT, &stored);
        assert_eq!(message.decode().expect("its own message"), stored);
        let mut damaged = message.0;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        assert!(StoredMessage(damaged).decode().is_err());
        assert!(StoredMessage(vec![0; 20]).decode().is_err());
    }
}
