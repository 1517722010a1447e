//! Between a worker and its coordinator.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{ExecutionId, ModuleDigest, Request, TaskDeployment, TaskEvent, TaskOrder};

/// What whoever opens a stream to a coordinator says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Opening {
    /// A worker offers its slots.
    Worker(Registration),
    /// A worker wants the bytes of a module, which are the answer, if there is such a module.
    Module(ModuleDigest),
    /// A client wants something.
    Client(Request),
}

/// A worker that offers itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Where other workers reach it.
    pub address: SocketAddr,
    /// How many slots it has.
    pub slots: u32,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub process: u32,
}

/// What a worker says to its coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// It is there.
    Heartbeat,
    /// Something of an execution.
    Task(ExecutionId, TaskEvent),
}

/// What a coordinator says to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// It has been registered, and has to be heard of within this time again and again.
    Registered {
        /// After how long a silence either takes the other for lost.
        timeout: Duration,
    },
    /// It is no worker of this cluster, and why.
    Refused(String),
    /// It is there.
    Heartbeat,
    /// Subtasks to run.
    Deploy(Box<TaskDeployment>),
    /// Something for an execution.
    Task(ExecutionId, TaskOrder),
}
