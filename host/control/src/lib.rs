//! What the roles of a cluster say to each other: messages, and nothing that sends them.
//!
//! Whoever opens a stream to a coordinator says first what it is for ([`Opening`]). A worker's stream stays open for as long
//! as both live: [`FromWorker`] one way, [`ToWorker`] the other. A client's has one [`Request`] and its [`Reply`].
//!
//! All parts of a cluster are of one version, which the handshake below sees to, so messages have no versions of their own.

mod client;
mod ids;
mod job;
mod snapshots;
mod task;
mod worker;

pub use client::{JobInfo, JobState, Reply, Request, SnapshotInfo, SnapshotOf, WorkerInfo};
pub use ids::{ExecutionId, JobId, ModuleDigest};
pub use job::{JobProgram, JobText, ModuleRef};
pub use snapshots::{StoredMessage, StoredMessageError};
pub use task::{
    ConnectorFailure, NoticeMessage, OperatorOfSubtask, ParticipationMessage, RestoreFrom, SlotPlace,
    SplitAnswer, TaskDeployment, TaskEvent, TaskFailure, TaskOrder,
};
pub use worker::{FromWorker, Opening, Registration, ToWorker};
