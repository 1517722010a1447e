//! What every part of Millstream speaks of: times, ids, schemas, keys, batches, stream elements and module
//! manifests. Nothing here runs anything; nothing here knows of a runtime, a sandbox or a disk.

mod batch;
mod columns;
mod crash_point;
mod element;
mod ids;
mod key;
mod key_group;
mod limits;
mod long_key;
mod manifest;
mod positions;
mod schema;
mod state_files;
mod state_part;
mod time;

pub use batch::{Batch, BatchError, compact};
pub use columns::{Cells, Columns, Entries, Runs};
pub use crash_point::crash_point;
pub use element::{Alignment, Barrier, BarrierKind, StreamElement};
pub use ids::{Attempt, JobName, OperatorId, PortIndex, RunId, SubtaskIndex};
pub use key::{EncodedKeys, KeyError, KeyReader, encode_keys, hash_keys};
pub use key_group::{KeyGroup, KeyGroupRange, MaxParallelism, hash_key};
pub use limits::Limits;
pub use long_key::{LongKey, long_keys};
pub use manifest::{
    Accumulator, Carry, Clock, Column, Distribution, Function, FunctionKind, Input, Lifecycle,
    MANIFEST_VERSION, Manifest, ManifestError, Module, Output, Parameter, Redistribution, State, StateKind,
};
pub use positions::{PortablePositions, Positions, RecordNumbers, RecordUnit};
pub use schema::{DataType, Field, ParseTypeError, Schema};
pub use state_files::{StateFile, StateFiles};
pub use state_part::{ChunkKind, Dealing, SnapshotRequest, StateChunk, StateForm, StatePart};
pub use time::{MAX_WATERMARK, MIN_WATERMARK, NO_TIME, Window};
