//! What can go wrong in an operator, whose fault it is and whether trying again helps.

use millstream_state::StateError;
use millstream_types::{Batch, BatchError, KeyError};

/// Whose fault an error is: it decides who is told and whether a restart makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The job, its functions or its data.
    User,
    /// Something outside: a disk, a host, a file that is gone.
    External,
    /// Ours.
    Internal,
}

/// A failure that ends a subtask.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The user's function failed.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// A source or sink failed.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A row has no usable key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Rows do not have the columns that the plan promised.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A call failed over rows that come from a known place.
    #[error("in the rows of {positions}")]
    At {
        /// Where the rows of the call stand in their source.
        positions: String,
        /// What went wrong.
        source: Box<OperatorError>,
    },
    /// A row was refused under the policy `fail`.
    #[error(
        "row refused: {reason}; row: {row}; set `on-error = \"skip\"` or `\"dead-letter\"` to go on without such rows"
    )]
    Rejected {
        /// Why.
        reason: String,
        /// The row as JSON, cut after some hundred characters.
        row: String,
    },
}

impl OperatorError {
    /// Says where the rows stand that a call failed over, if that says more than the error itself.
    pub fn at(self, batch: &Batch) -> Self {
        match (batch.positions(), self) {
            (Some(positions), error @ (Self::Function(_) | Self::Key(_))) => {
                Self::At { positions: positions.to_string(), source: Box::new(error) }
            }
            (_, error) => error,
        }
    }

    /// Whose fault it is.
    pub fn whose(&self) -> Whose {
        match self {
            OperatorError::Function(_) | OperatorError::Key(_) | OperatorError::Rejected { .. } => {
                Whose::User
            }
            OperatorError::Connector(e) => e.whose,
            OperatorError::At { source, .. } => source.whose(),
            OperatorError::State(_) | OperatorError::Batch(_) => Whose::Internal,
        }
    }
}

/// A failed call of a user function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function returned `err`: it refuses the whole call.
    #[error("function `{function}` refused the call: {message}")]
    Refused {
        /// The function.
        function: String,
        /// What it said.
        message: String,
    },
    /// The guest panicked or did something that a machine stops: the instance is gone.
    #[error("function `{function}` trapped in `{call}`: {message}{backtrace}")]
    Trapped {
        /// The function.
        function: String,
        /// The export that was called.
        call: &'static str,
        /// The panic text, or what the machine says of the trap.
        message: String,
        /// The guest's call stack with function names, empty or starting with a line break.
        backtrace: String,
    },
    /// The guest used up a budget: time, memory, what it may hand over in one call.
    #[error("function `{function}` was stopped in `{call}`: {budget}{backtrace}")]
    OverBudget {
        /// The function.
        function: String,
        /// The export that was called.
        call: &'static str,
        /// Which budget, how much it was, and the setting that raises it.
        budget: String,
        /// The guest's call stack with function names, empty or starting with a line break.
        backtrace: String,
    },
    /// The guest returned something that cannot be taken.
    #[error("function `{function}` returned from `{call}` what cannot be taken: {problem}")]
    Malformed {
        /// The function.
        function: String,
        /// The export that was called.
        call: &'static str,
        /// What was found and what was expected.
        problem: String,
    },
    /// The module cannot be run at all.
    #[error("module `{module}` cannot be used: {problem}")]
    Module {
        /// The module's name or path.
        module: String,
        /// What was found and what was expected.
        problem: String,
    },
}

impl FunctionError {
    /// Whether the same rows in smaller calls can go through: the instance is lost but the input may be good.
    pub fn isolates(&self) -> bool {
        matches!(self, Self::Trapped { .. } | Self::OverBudget { .. } | Self::Malformed { .. })
    }
}

/// A failed source or sink.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// File or address, position, what was found, what was expected.
    pub message: String,
    /// Whose fault it is.
    pub whose: Whose,
    /// What the system said, if it did.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConnectorError {
    /// The job or its data are wrong.
    pub fn user(message: impl Into<String>) -> Self {
        Self { message: message.into(), whose: Whose::User, source: None }
    }

    /// Something outside failed.
    pub fn external(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), whose: Whose::External, source: Some(source.into()) }
    }
}

/// What happens to a row that cannot be read or that a function refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowPolicy {
    /// The job fails.
    #[default]
    Fail,
    /// The row is counted and left out.
    Skip,
    /// The row goes to the operator's `dead-letter` output with the reason.
    DeadLetter,
}
