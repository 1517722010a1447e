//! What travels over the stream of a channel, byte by byte.
//!
//! Everything is a frame: 24 bytes of header ([`frame::Header`]) and a payload of the length that it names. Numbers are
//! little-endian. The sender's frames are numbered, and each has a crc32c of header and payload, so that damage on the way
//! through memory is found that TLS cannot see. Rows are raw buffers ([`batch`]), all else is postcard.
//!
//! What arrives is input: lengths are looked at before anything is allocated for them, and every buffer before an array
//! is made of it.

pub(crate) mod batch;
pub(crate) mod event;
pub(crate) mod frame;
pub(crate) mod message;
