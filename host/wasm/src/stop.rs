//! Why the host stops a guest in the middle of a call.

use std::time::Duration;

use millstream_state::StateError;

use crate::{boundary::lift::Problem, options::FunctionLimits};

/// Raised inside a call and found again in the error that the call ends with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("it needs {} of memory, its limit is {} (`{}`)", Bytes(*wanted), Bytes(*limit), FunctionLimits::MEMORY_SETTING)]
    Memory { wanted: usize, limit: usize },
    #[error("it has computed for {limit:?}, the limit of one call (`{}`)", FunctionLimits::CALL_TIME_SETTING)]
    CallTime { limit: Duration },
    #[error("it hands over more than {} in one call (`{}`)", Bytes(*limit), FunctionLimits::CALL_BYTES_SETTING)]
    CallBytes { limit: usize },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{call}: what is passed {problem}")]
    Passed { call: &'static str, problem: Problem },
    #[error("{0}")]
    Misuse(String),
}

impl Stop {
    /// Whether a budget ran out; otherwise the guest did something that it must not.
    pub(crate) fn is_budget(&self) -> bool {
        matches!(self, Stop::Memory { .. } | Stop::CallTime { .. } | Stop::CallBytes { .. })
    }
}

/// A number of bytes as messages show it.
pub(crate) struct Bytes(pub(crate) usize);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.iter().find(|(size, _)| self.0 >= *size) {
            Some((size, unit)) if self.0.is_multiple_of(*size) => write!(f, "{} {unit}", self.0 / size),
            Some((size, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_name_their_setting() {
        let text = Stop::Memory { wanted: 300 << 20, limit: 256 << 20 }.to_string();
        assert_eq!(text, "it needs 300 MiB of memory, its limit is 256 MiB (`limits.memory`)");
        assert_eq!(Bytes(1500).to_string(), "1.5 KiB");
        assert_eq!(Bytes(7).to_string(), "7 bytes");
    }
}
