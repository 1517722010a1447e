//! A clock that sources and sinks of one process share, for latencies.

use std::{sync::LazyLock, time::Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds since the first call in this process; never backwards.
pub(crate) fn nanos() -> u64 {
    START.elapsed().as_nanos() as u64
}
