//! How an engine is set up, and what one function may use.

use std::{path::PathBuf, time::Duration};

use millstream_types::Limits;

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct WasmOptions {
    /// How many instances may be alive at once. Each reserves address space, not memory, ahead of its use.
    pub instances: u32,
    /// Stack of a guest's calls. Deeper recursion stops the call.
    pub stack_bytes: usize,
    /// How often a guest that computes for long lets others on its thread run.
    pub tick: Duration,
    /// Where compiled modules are kept for the next start; without one each start compiles them.
    pub cache_dir: Option<PathBuf>,
    /// What `describe` and functions without limits of their own may use.
    pub limits: FunctionLimits,
}

impl Default for WasmOptions {
    fn default() -> Self {
        Self {
            instances: Limits::INSTANCES,
            stack_bytes: 1 << 20,
            tick: Duration::from_millis(10),
            cache_dir: None,
            limits: FunctionLimits::default(),
        }
    }
}

/// What one instance of a function may use. Messages name these by their settings in the job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionLimits {
    /// Linear memory: `limits.memory`.
    pub memory_bytes: usize,
    /// Computing time of one call, without the time in which others ran: `limits.call-timeout`.
    pub call_time: Duration,
    /// What the guest may hand over in one call, as its result and to imports together: `limits.output`.
    pub call_bytes: usize,
    /// Memory above which the instance is replaced by a fresh one once its call is done; none means that it is kept.
    pub recycle_memory_bytes: Option<usize>,
}

impl FunctionLimits {
    /// The setting of [`FunctionLimits::memory_bytes`].
    pub const MEMORY_SETTING: &'static str = "limits.memory";
    /// The setting of [`FunctionLimits::call_time`].
    pub const CALL_TIME_SETTING: &'static str = "limits.call-timeout";
    /// The setting of [`FunctionLimits::call_bytes`].
    pub const CALL_BYTES_SETTING: &'static str = "limits.output";
}

impl Default for FunctionLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            call_time: Duration::from_secs(10),
            call_bytes: 512 << 20,
            recycle_memory_bytes: None,
        }
    }
}
