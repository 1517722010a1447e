//! Keyed state larger than memory, in RocksDB: the one crate that names it.
//!
//! [`RocksStore`] is the store behind [`millstream_state::CachedBackend`]. A subtask has an instance of its own, without
//! a log, in a folder that lives as long as its job ([`StateFolder`]): what survives a crash is snapshots. Instances
//! share the memory that RocksDB takes ([`RocksMemory`]). An image of an instance is hard links to its files; anybody can
//! open it to read ([`OpenImage`]).

mod folder;
mod options;
mod store;

pub use folder::StateFolder;
pub use options::RocksMemory;
pub use store::{OpenImage, RocksStore};
