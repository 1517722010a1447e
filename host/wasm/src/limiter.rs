//! The memory budget of an instance.

use wasmtime::ResourceLimiter;

use crate::stop::Stop;

/// Stops an instance that wants more memory than it may have: a guest that were only told that there is none would
/// abort without a word.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    used: usize,
}

impl MemoryLimiter {
    /// At most `limit` bytes in all linear memories together.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let wanted = self.used.saturating_add(desired - current);
        if wanted > self.limit {
            return Err(wasmtime::Error::new(Stop::Memory { wanted, limit: self.limit }));
        }
        self.used = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }
}

/// Entries of a table: far more than any compiler emits.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 100_000;
