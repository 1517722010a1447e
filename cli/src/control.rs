//! Speaking to a running job: one request a connection, a line of JSON each way.
//!
//! The process that has a run listens on a Unix socket in a folder that only its user can enter, and writes into the
//! run's folder where that is (`run.control`). Who wants something of the job finds it there, whatever the storage is. A
//! process that was killed leaves both behind; that nobody listens shows that it has gone.

mod client;
mod protocol;
mod server;

pub(crate) use client::connect;
pub(crate) use protocol::{Reply, Request, host};
pub(crate) use server::{Claimed, ControlError, Serving};
