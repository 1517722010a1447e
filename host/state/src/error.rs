//! What can go wrong with state.

/// State that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// No state of this name was declared.
    #[error("no {kind} state `{name}` in the manifest: declared are {declared}")]
    Unknown {
        /// The kind asked for.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// What there is.
        declared: String,
    },
    /// A position that names no key of the call.
    #[error("key position {position} does not exist: the call has {keys} keys")]
    NoSuchKey {
        /// The position given.
        position: u32,
        /// How many keys there are.
        keys: usize,
    },
    /// Values that do not have the state's shape.
    #[error("state `{name}`: {problem}")]
    Shape {
        /// The state.
        name: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// Stored bytes that are no row of the state's columns.
    #[error("a stored row is damaged: its bytes are not one of the state's columns")]
    DamagedRow,
    /// Stored bytes that are no entries of a snapshot.
    #[error("a chunk of a snapshot is damaged: it ends in the middle of an entry")]
    DamagedChunk,
    /// A store on disk that cannot be read or written.
    #[error("state on disk in `{path}` cannot be {action}: {cause}")]
    Store {
        /// Its folder.
        path: String,
        /// What was to be done with it, as a participle.
        action: &'static str,
        /// What it says.
        cause: String,
    },
    /// A snapshot has a state that the function does not declare.
    #[error("the snapshot has state `{name}`, which the function does not declare")]
    NotDeclared {
        /// The state.
        name: String,
    },
    /// A snapshot has a state with other columns.
    #[error("state `{name}` has the columns ({found}) in the snapshot, ({wanted}) are declared")]
    OtherColumns {
        /// The state.
        name: String,
        /// In the snapshot.
        found: String,
        /// In the manifest.
        wanted: String,
    },
}
