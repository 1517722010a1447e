//! The runtime's decisions as pure state machines: no clock, no socket, no executor. Events go in by `handle_*`,
//! what has to happen comes out as values; the caller acts.

mod alignment;
mod barrier;
mod checkpoint;
mod credit;
mod grant;
mod restart;
mod valve;

pub use alignment::{Alignment, MaxDrift, slowest};
pub use barrier::{Aligner, AlignmentEvent};
pub use checkpoint::{
    AskedSnapshot, CheckpointAction, CheckpointCoordinator, CheckpointFailure, CheckpointSettings,
    Participants, RequestRefused,
};
pub use credit::{Admission, CREDIT_BYTES, CreditLedger, credits_for};
pub use grant::{Ask, GrantBook, Overrun};
pub use restart::{RestartDecision, RestartStrategy, Restarts};
pub use valve::{Valve, ValveEvents};
