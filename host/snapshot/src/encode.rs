//! Metadata to bytes.

use millstream_types::Column;

use crate::{
    ChunkMetadata, FORMAT_VERSION, Location, ModuleMetadata, OperatorMetadata, Program, SnapshotMetadata,
    StateMetadata, SubtaskMetadata, bytes::Writer, checksum,
};

/// What every snapshot starts with.
pub(crate) const MAGIC: [u8; 8] = *b"MLSTSNAP";

/// Bytes before the body: magic, version, length of the body, checksum of the body.
pub(crate) const HEADER: usize = 28;

impl SnapshotMetadata {
    /// The metadata as a file has it.
    pub fn encode(&self) -> Vec<u8> {
        let body = self.body();
        let mut file = Writer::default();
        file.bytes.extend(MAGIC);
        file.u32(FORMAT_VERSION);
        file.u64(body.len() as u64);
        file.u64(checksum(&body));
        file.bytes.extend(body);
        file.bytes
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Writer::default();
        body.u64(self.checkpoint);
        body.u8(self.kind as u8);
        body.blob(self.job.as_bytes());
        body.u16(self.max_parallelism.groups());
        body.i64(self.triggered);
        body.i64(self.completed);
        body.list(&self.operators, operator);
        body.u8(u8::from(self.program.is_some()));
        if let Some(of) = &self.program {
            program(&mut body, of);
        }
        body.bytes
    }
}

fn operator(to: &mut Writer, operator: &OperatorMetadata) {
    to.blob(operator.id.as_bytes());
    to.list(&operator.key, column);
    to.blob(operator.windows.as_bytes());
    to.list(&operator.subtasks, subtask);
    to.list(&operator.shared, state);
}

fn subtask(to: &mut Writer, subtask: &SubtaskMetadata) {
    to.u8(u8::from(subtask.ended));
    to.u64(subtask.alignment_micros);
    to.u64(subtask.pause_micros);
    to.list(&subtask.states, state);
}

fn state(to: &mut Writer, state: &StateMetadata) {
    to.blob(state.name.as_bytes());
    to.u8(state.form.number());
    to.u32(state.version);
    to.list(&state.columns, column);
    to.list(&state.places, place);
    to.list(&state.chunks, chunk);
}

fn place(to: &mut Writer, place: &Location) {
    match place {
        Location::Inline(bytes) => {
            to.u8(INLINE);
            to.blob(bytes);
        }
        Location::File(path) => {
            to.u8(FILE);
            to.blob(path.as_bytes());
        }
    }
}

fn column(to: &mut Writer, column: &Column) {
    to.blob(column.name.as_bytes());
    to.blob(column.data_type.name().as_bytes());
    to.u8(u8::from(column.nullable));
}

fn chunk(to: &mut Writer, chunk: &ChunkMetadata) {
    to.u16(chunk.key_group.map_or(NO_KEY_GROUP, |group| group.0));
    to.u8(chunk.kind as u8);
    to.u16(chunk.place);
    to.u64(chunk.offset);
    to.u64(chunk.length);
    to.u64(chunk.checksum);
}

fn program(to: &mut Writer, program: &Program) {
    to.blob(program.job_file.as_bytes());
    to.u8(program.form as u8);
    to.blob(program.text.as_bytes());
    to.list(&program.modules, module);
}

fn module(to: &mut Writer, module: &ModuleMetadata) {
    to.blob(module.name.as_bytes());
    to.bytes.extend(module.digest);
    to.u64(module.length);
    to.blob(module.file.as_bytes());
}

/// The chunks follow.
pub(crate) const INLINE: u8 = 0;
/// A path follows.
pub(crate) const FILE: u8 = 1;
/// The key group of a chunk that has none.
pub(crate) const NO_KEY_GROUP: u16 = u16::MAX;
