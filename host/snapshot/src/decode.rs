//! Bytes to metadata.

use millstream_types::{ChunkKind, Column, KeyGroup, MaxParallelism, StateForm};

use crate::{
    ChunkMetadata, FORMAT_VERSION, JobFileForm, Location, ModuleMetadata, OperatorMetadata, Program,
    SnapshotError, SnapshotKind, SnapshotMetadata, StateMetadata, SubtaskMetadata,
    bytes::Reader,
    checksum,
    encode::{FILE, HEADER, INLINE, MAGIC, NO_KEY_GROUP},
    places,
};

impl SnapshotMetadata {
    /// Reads what [`SnapshotMetadata::encode`] wrote, in this or an earlier version.
    pub fn decode(file: &[u8]) -> Result<Self, SnapshotError> {
        let mut body = Reader::new(checked_body(file)?);
        let metadata = metadata(&mut body)?;
        if let Some(problem) = places::problem(&metadata) {
            return Err(body.malformed(problem));
        }
        body.end()?;
        Ok(metadata)
    }
}

/// The body, once header, length and checksum have been found to be right.
fn checked_body(file: &[u8]) -> Result<&[u8], SnapshotError> {
    let start = &file[..file.len().min(MAGIC.len())];
    if start != &MAGIC[..start.len()] {
        return Err(SnapshotError::NoSnapshot { found: start.to_vec(), expected: MAGIC.to_vec() });
    }
    let found = file.len() as u64;
    let Some(header) = file.get(MAGIC.len()..HEADER) else {
        return Err(SnapshotError::Length { found, expected: HEADER as u64 });
    };
    let mut header = Reader::new(header);
    let (version, length, expected) = (header.u32()?, header.u64()?, header.u64()?);
    if version == 0 || version > FORMAT_VERSION {
        return Err(SnapshotError::Version { found: version, known: FORMAT_VERSION });
    }
    let whole = length.saturating_add(HEADER as u64);
    if found != whole {
        return Err(SnapshotError::Length { found, expected: whole });
    }
    let body = &file[HEADER..];
    let found = checksum(body);
    if found == expected { Ok(body) } else { Err(SnapshotError::Checksum { found, expected }) }
}

fn metadata(from: &mut Reader<'_>) -> Result<SnapshotMetadata, SnapshotError> {
    Ok(SnapshotMetadata {
        checkpoint: from.u64()?,
        kind: match from.u8()? {
            1 => SnapshotKind::Checkpoint,
            2 => SnapshotKind::Savepoint,
            other => return Err(from.malformed(format!("there is no snapshot of kind {other}"))),
        },
        job: from.text()?,
        max_parallelism: {
            let groups = from.u16()?;
            let problem = || from.malformed(format!("{groups} key groups: 1 to 32768 expected"));
            MaxParallelism::new(groups.into()).ok_or_else(problem)?
        },
        triggered: from.i64()?,
        completed: from.i64()?,
        operators: from.list(operator)?,
        program: if from.flag()? { Some(program(from)?) } else { None },
    })
}

fn operator(from: &mut Reader<'_>) -> Result<OperatorMetadata, SnapshotError> {
    Ok(OperatorMetadata {
        id: from.text()?,
        key: from.list(column)?,
        windows: from.text()?,
        subtasks: from.list(subtask)?,
        shared: from.list(state)?,
    })
}

fn subtask(from: &mut Reader<'_>) -> Result<SubtaskMetadata, SnapshotError> {
    Ok(SubtaskMetadata {
        ended: from.flag()?,
        alignment_micros: from.u64()?,
        pause_micros: from.u64()?,
        states: from.list(state)?,
    })
}

fn state(from: &mut Reader<'_>) -> Result<StateMetadata, SnapshotError> {
    let name = from.text()?;
    let form = from.u8()?;
    let form = StateForm::of_number(form);
    let form = form.ok_or_else(|| from.malformed(format!("`{name}` has a form that is not known")))?;
    let (version, columns) = (from.u32()?, from.list(column)?);
    let places = from.list(place)?;
    let chunks = from.list(chunk)?;
    for chunk in &chunks {
        let found = places.get(usize::from(chunk.place));
        let whole = match found {
            Some(Location::Inline(bytes)) => chunk.end() <= bytes.len() as u64,
            Some(Location::File(_)) => true,
            None => false,
        };
        if !whole {
            return Err(from.malformed(format!("a chunk of `{name}` lies where nothing is")));
        }
    }
    Ok(StateMetadata { name, form, version, columns, places, chunks })
}

fn place(from: &mut Reader<'_>) -> Result<Location, SnapshotError> {
    match from.u8()? {
        INLINE => Ok(Location::Inline(from.blob()?.to_vec())),
        FILE => Ok(Location::File(from.text()?)),
        other => Err(from.malformed(format!("there is no place of kind {other}"))),
    }
}

fn column(from: &mut Reader<'_>) -> Result<Column, SnapshotError> {
    let (name, data_type) = (from.text()?, from.text()?);
    let data_type = data_type.parse().map_err(|e| from.malformed(format!("column `{name}`: {e}")))?;
    Ok(Column { name, data_type, nullable: from.flag()? })
}

fn program(from: &mut Reader<'_>) -> Result<Program, SnapshotError> {
    Ok(Program {
        job_file: from.text()?,
        form: match from.u8()? {
            1 => JobFileForm::Toml,
            2 => JobFileForm::Json,
            other => return Err(from.malformed(format!("there is no job file of form {other}"))),
        },
        text: from.text()?,
        modules: from.list(module)?,
    })
}

fn module(from: &mut Reader<'_>) -> Result<ModuleMetadata, SnapshotError> {
    let module =
        ModuleMetadata { name: from.text()?, digest: from.array()?, length: from.u64()?, file: from.text()? };
    let plain = !module.file.is_empty() && !module.file.contains(['/', '\\']);
    if plain { Ok(module) } else { Err(from.malformed(format!("`{}` is no file beside it", module.file))) }
}

fn chunk(from: &mut Reader<'_>) -> Result<ChunkMetadata, SnapshotError> {
    let group = from.u16()?;
    Ok(ChunkMetadata {
        key_group: (group != NO_KEY_GROUP).then_some(KeyGroup(group)),
        kind: match from.u8()? {
            0 => ChunkKind::Whole,
            1 => ChunkKind::Changes,
            other => return Err(from.malformed(format!("there is no chunk of kind {other}"))),
        },
        place: from.u16()?,
        offset: from.u64()?,
        length: from.u64()?,
        checksum: from.u64()?,
    })
}
