//! State that comes piece by piece at a restore, as all of it would not fit into memory.

use std::fmt::Debug;

use async_trait::async_trait;
use millstream_types::StatePart;

/// Pieces of the state of one operator.
#[async_trait(?Send)]
pub trait StatePieces: Debug {
    /// The next piece; none if that was all.
    ///
    /// # Errors
    /// If it cannot be read, or is not what was stored.
    async fn next(&mut self) -> Result<Option<StatePart>, Box<dyn std::error::Error + Send + Sync>>;
}

/// The pieces of an operator, by its position in the chain.
pub type PiecesOf = (usize, Box<dyn StatePieces>);
