//! Sinks that keep no rows: the terminal, and those of measurements.

mod blackhole;
mod checksum;
mod form;
mod latency;
mod print;

pub(crate) use blackhole::BlackholeSink;
pub(crate) use checksum::ChecksumSink;
pub(crate) use latency::LatencySink;
pub(crate) use print::PrintSink;
