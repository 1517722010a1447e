//! The metadata of a snapshot: everything that a restore has to know before it reads state.

use std::fmt;

use millstream_types::{ChunkKind, Column, KeyGroup, MaxParallelism, StateChunk, StateForm, StatePart};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// A snapshot of a whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMetadata {
    /// Its number, ascending within a job.
    pub checkpoint: u64,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// The job's name.
    pub job: String,
    /// Number of key groups of the job, fixed for its life.
    pub max_parallelism: MaxParallelism,
    /// When it was triggered, milliseconds since the epoch.
    pub triggered: i64,
    /// When all participants had acknowledged it.
    pub completed: i64,
    /// The operators that have state, or have had rows.
    pub operators: Vec<OperatorMetadata>,
    /// What the job is made of, in a savepoint.
    pub program: Option<Program>,
}

/// Why a snapshot was taken. The numbers are on disk for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SnapshotKind {
    /// In the course of things; its owner deletes it when it is superseded.
    Checkpoint = 1,
    /// A user asked for it; it belongs to the user.
    Savepoint = 2,
}

/// The state of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorMetadata {
    /// Its identity, under which its state is kept for ever.
    pub id: String,
    /// The columns by which its keyed state is keyed, in order; none if it has no key.
    pub key: Vec<Column>,
    /// How it cuts time into windows, as a text to compare and to show; empty if it does not.
    pub windows: String,
    /// Its subtasks in order; as many as its parallelism was.
    pub subtasks: Vec<SubtaskMetadata>,
    /// What is kept once for all subtasks: a source's enumerator.
    pub shared: Vec<StateMetadata>,
}

/// The state of an operator in one subtask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubtaskMetadata {
    /// Whether it had processed the end of its input.
    pub ended: bool,
    /// Microseconds from the barrier of its first channel to that of its last one.
    pub alignment_micros: u64,
    /// Microseconds for which it stood still to take its snapshot.
    pub pause_micros: u64,
    /// Its states.
    pub states: Vec<StateMetadata>,
}

/// One state of one operator subtask: a part with its chunks elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateMetadata {
    /// The state's name.
    pub name: String,
    /// What it is.
    pub form: StateForm,
    /// Version of its columns.
    pub version: u32,
    /// The columns of its rows.
    pub columns: Vec<Column>,
    /// Where its chunks are: several places, if it builds on earlier snapshots.
    pub places: Vec<Location>,
    /// The chunks, in order: those of a key group follow each other, a whole one first and then changes.
    pub chunks: Vec<ChunkMetadata>,
}

/// What a job is made of: enough to run it where there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The path of the job file, for messages.
    pub job_file: String,
    /// How it is written.
    pub form: JobFileForm,
    /// What it says. Variables of the environment are not replaced, as their values may be secret.
    pub text: String,
    /// The modules that it names.
    pub modules: Vec<ModuleMetadata>,
}

/// How a job file is written. The numbers are on disk for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JobFileForm {
    /// TOML.
    Toml = 1,
    /// JSON.
    Json = 2,
}

/// A module of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleMetadata {
    /// What the job file calls it.
    pub name: String,
    /// The BLAKE3 hash of its bytes.
    pub digest: [u8; 32],
    /// How many there are.
    pub length: u64,
    /// The file that has them, beside the metadata. Modules of the same bytes share one.
    pub file: String,
}

/// Where chunks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Here: small state needs no file of its own.
    Inline(Vec<u8>),
    /// In a file beside the metadata, or in the folder of an earlier checkpoint; relative to the folder of the metadata.
    File(String),
}

/// One chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMetadata {
    /// Its key group, if the state is keyed.
    pub key_group: Option<KeyGroup>,
    /// Whether it has everything or what has changed.
    pub kind: ChunkKind,
    /// Where it is, of the state's places.
    pub place: u16,
    /// Where it starts there.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
    /// What its bytes hash to: [`checksum`].
    pub checksum: u64,
}

/// The checksum of stored bytes: XXH3, 64 bits, seed 0.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The [`checksum`] of bytes that come piece by piece.
#[derive(Clone, Default)]
pub struct Checksum(Xxh3Default);

impl Checksum {
    /// Adds what comes next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all that has come.
    pub fn digest(&self) -> u64 {
        self.0.digest()
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.digest())
    }
}

impl SnapshotMetadata {
    /// The state of an operator.
    pub fn operator(&self, id: &str) -> Option<&OperatorMetadata> {
        self.operators.iter().find(|operator| operator.id == id)
    }

    /// The files that it refers to, each once, relative to its folder.
    pub fn files(&self) -> Vec<&str> {
        let files = self.states().flat_map(|state| &state.places).filter_map(|place| match place {
            Location::File(path) => Some(path.as_str()),
            Location::Inline(_) => None,
        });
        let modules = self.program.iter().flat_map(|program| &program.modules);
        let mut files: Vec<&str> = files.chain(modules.map(|module| module.file.as_str())).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Bytes of state, wherever they are.
    pub fn state_bytes(&self) -> u64 {
        self.states().map(StateMetadata::bytes).sum()
    }

    /// Whether its barrier has overtaken anything that was to be part of it, even if nothing was there.
    pub fn is_unaligned(&self) -> bool {
        self.overtaken().next().is_some()
    }

    /// Bytes of what was under way in channels.
    pub fn in_flight_bytes(&self) -> u64 {
        self.overtaken().map(StateMetadata::bytes).sum()
    }

    fn overtaken(&self) -> impl Iterator<Item = &StateMetadata> {
        self.states().filter(|state| state.form == StateForm::Overtaken)
    }

    /// How long its slowest subtask waited for its barrier to come through all channels, in microseconds.
    pub fn alignment_micros(&self) -> u64 {
        self.subtasks().map(|subtask| subtask.alignment_micros).max().unwrap_or(0)
    }

    /// How long the subtask that stood still longest did so, in microseconds.
    pub fn pause_micros(&self) -> u64 {
        self.subtasks().map(|subtask| subtask.pause_micros).max().unwrap_or(0)
    }

    fn subtasks(&self) -> impl Iterator<Item = &SubtaskMetadata> {
        self.operators.iter().flat_map(|operator| &operator.subtasks)
    }

    /// The states of all operators.
    pub fn states(&self) -> impl Iterator<Item = &StateMetadata> {
        self.operators.iter().flat_map(OperatorMetadata::states)
    }
}

impl OperatorMetadata {
    /// Its states, by subtask, then what is kept once.
    pub fn states(&self) -> impl Iterator<Item = &StateMetadata> {
        self.subtasks.iter().flat_map(|subtask| &subtask.states).chain(&self.shared)
    }
}

impl Program {
    /// The module of a name.
    pub fn module(&self, name: &str) -> Option<&ModuleMetadata> {
        self.modules.iter().find(|module| module.name == name)
    }
}

impl ModuleMetadata {
    /// Describes a module of these bytes.
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        let digest = blake3::hash(bytes);
        let file = format!("module-{}.wasm", &digest.to_hex()[..16]);
        Self { name: name.to_owned(), digest: digest.into(), length: bytes.len() as u64, file }
    }

    /// Whether these are its bytes.
    pub fn is(&self, bytes: &[u8]) -> bool {
        blake3::hash(bytes) == blake3::Hash::from(self.digest)
    }
}

impl StateMetadata {
    /// Describes a part whose chunks lie one behind the other from `offset` on in the one place `location`.
    pub fn of_part(part: &StatePart, location: Location, mut offset: u64) -> Self {
        let describe = |chunk: &StateChunk| {
            let length = chunk.bytes.len() as u64;
            let (at, checksum) = (offset, checksum(&chunk.bytes));
            offset += length;
            let (key_group, kind) = (chunk.key_group, chunk.kind);
            ChunkMetadata { key_group, kind, place: 0, offset: at, length, checksum }
        };
        let chunks = part.chunks.iter().map(describe).collect();
        let (name, columns) = (part.name.clone(), part.columns.clone());
        Self { name, form: part.form, version: part.version, columns, places: vec![location], chunks }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|c| c.length).sum()
    }
}

impl ChunkMetadata {
    /// The position behind its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
