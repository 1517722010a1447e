//! Changes applied to what they change, without a backend: for those who want each key of a part once.

use std::{borrow::Cow, collections::BTreeMap};

use millstream_types::{ChunkKind, KeyGroup, StateChunk, StateForm, StatePart};

use crate::{
    StateError,
    row_codec::RowCodec,
    snapshot::{put_bytes, take_bytes, take_u32},
};

/// The part with one whole chunk for each key group, keys in their order where changes have been applied. A part without
/// changes stays as it is.
///
/// # Errors
/// If a chunk ends in the middle of an entry.
pub fn fold(part: &StatePart) -> Result<Cow<'_, StatePart>, StateError> {
    if part.chunks.iter().all(|chunk| chunk.kind == ChunkKind::Whole) {
        return Ok(Cow::Borrowed(part));
    }
    let codec = RowCodec::new(&part.columns);
    let mut groups: BTreeMap<Option<KeyGroup>, BTreeMap<&[u8], &[u8]>> = BTreeMap::new();
    for chunk in &part.chunks {
        let entries = groups.entry(chunk.key_group).or_default();
        let mut bytes = &chunk.bytes[..];
        match chunk.kind {
            ChunkKind::Whole => entries.clear(),
            ChunkKind::Changes => {
                for _ in 0..take_u32(&mut bytes)? {
                    entries.remove(take_bytes(&mut bytes)?);
                }
            }
        }
        while !bytes.is_empty() {
            let key = take_bytes(&mut bytes)?;
            entries.insert(key, take_entry(part.form, &codec, &mut bytes)?);
        }
    }
    let chunk = |(key_group, entries): (Option<KeyGroup>, BTreeMap<&[u8], &[u8]>)| {
        let mut bytes = Vec::new();
        for (key, entry) in entries {
            put_bytes(key, &mut bytes);
            bytes.extend_from_slice(entry);
        }
        StateChunk { key_group, kind: ChunkKind::Whole, bytes }
    };
    let chunks = groups.into_iter().map(chunk).filter(|chunk| !chunk.bytes.is_empty()).collect();
    let (name, columns) = (part.name.clone(), part.columns.clone());
    Ok(Cow::Owned(StatePart {
        name,
        form: part.form,
        version: part.version,
        columns,
        base: part.base,
        chunks,
        files: None,
    }))
}

/// [`fold`] of a part that is not needed any more.
///
/// # Errors
/// As [`fold`].
pub fn folded(part: StatePart) -> Result<StatePart, StateError> {
    let made = match fold(&part)? {
        Cow::Owned(made) => Some(made),
        Cow::Borrowed(_) => None,
    };
    Ok(made.unwrap_or(part))
}

/// Cuts what is stored for a key off the front of `bytes`.
fn take_entry<'a>(form: StateForm, codec: &RowCodec, bytes: &mut &'a [u8]) -> Result<&'a [u8], StateError> {
    let start = *bytes;
    match form {
        StateForm::Value => _ = codec.split_row(bytes)?,
        StateForm::List => {
            take_u32(bytes)?;
            take_bytes(bytes)?;
        }
        StateForm::Map => {
            for _ in 0..take_u32(bytes)? {
                take_bytes(bytes)?;
                take_bytes(bytes)?;
            }
        }
        StateForm::EventTimers | StateForm::ProcessingTimers | StateForm::Expiries => {
            let times = take_u32(bytes)? as usize;
            let length = times.checked_mul(size_of::<i64>()).ok_or(StateError::DamagedChunk)?;
            *bytes = bytes.get(length..).ok_or(StateError::DamagedChunk)?;
        }
        // No other form has changes.
        _ => return Err(StateError::DamagedChunk),
    }
    Ok(&start[..start.len() - bytes.len()])
}
