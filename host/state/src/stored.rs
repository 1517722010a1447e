//! Stored state without operators: what a chunk of a snapshot has, for whoever rewrites its rows or shows them.
//!
//! `host/snapshot/FORMAT.md` specifies the bytes; [`walk`](mod@walk) is what knows them here.

mod channel;
mod evolve;
mod show;
mod walk;

pub use channel::{ChannelContent, decode_channel, encode_channel};
pub use evolve::{evolve_part, replace_rows, rows_of};
pub use show::show_part;
