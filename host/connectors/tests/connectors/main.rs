//! Connectors over real files, through the traits that tasks use.

mod bad_files;
mod bad_input;
mod file;
mod generator;
mod snapshots;
mod support;
