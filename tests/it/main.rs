//! The integration tests: the real command, over real files, with real guests.
//!
//! One binary, so that the host is linked once. It belongs to the package of the command, which is built with it.

mod subject;
mod support;

mod backpressure;
mod bad_input;
mod cli_languages;
mod cli_new;
mod cluster;
mod conformance;
mod crashes;
mod disks;
mod examples;
mod expiry;
mod faults;
mod languages;
mod on_disk;
mod recovery;
mod restarts;
mod restores;
mod s3;
mod savepoints;
mod signals;
mod sources;
mod storage_faults;
mod wasi;
mod windows_on_disk;
