//! What a snapshot of a job is on disk: its metadata, byte by byte, whether a job can go on from it, and how its state is
//! dealt out then.
//!
//! `FORMAT.md` beside this crate specifies the bytes. Files hold the chunks of the state of operator subtasks; the
//! metadata says of each chunk where it is, how long it is and what it has to hash to, so that a torn or altered file is
//! found before anything is restored from it. Nothing here reads or writes a disk.

mod bytes;
mod chain;
mod decode;
mod encode;
mod error;
mod evolution;
mod metadata;
mod places;
mod redistribute;
#[cfg(test)]
mod tests;
mod verdict;

pub use chain::ChainError;
pub use error::SnapshotError;
pub use metadata::{
    Checksum, ChunkMetadata, JobFileForm, Location, ModuleMetadata, OperatorMetadata, Program, SnapshotKind,
    SnapshotMetadata, StateMetadata, SubtaskMetadata, checksum,
};
pub use redistribute::{RedistributeError, SubtaskState, state_of};
pub use verdict::{RestoreReport, StateVerdict, Verdict, WantedOperator, WantedState, verdict_on};

/// Version of the form of metadata that this version writes. It reads every version up to it.
pub const FORMAT_VERSION: u32 = 1;
