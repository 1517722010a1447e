//! What a job grants a function beyond computing.

use std::fmt;

/// One entry of `allow`. It holds no values: plans are shown and sent, and what is granted may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// This variable of the host reaches the component's environment.
    Environment(String),
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "env:{name}"),
        }
    }
}
