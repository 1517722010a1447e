//! What operators keep for themselves in a subtask, in a snapshot: a number under a name.
//!
//! After a restore at another parallelism there may be several of a name, and it is up to the operator what they mean.

use millstream_state::StateError;
use millstream_types::{MAX_WATERMARK, MIN_WATERMARK, StateChunk, StateForm, StatePart};

/// A number as a part of a snapshot.
pub(crate) fn number(name: &str, value: i64) -> StatePart {
    StatePart::plain(name, StateForm::Subtask, vec![StateChunk::item(value.to_le_bytes().to_vec())])
}

/// Takes the numbers of a name out of a snapshot.
pub(crate) fn take_numbers(name: &str, parts: &mut Vec<StatePart>) -> Result<Vec<i64>, StateError> {
    let chunks = take_parts(name, StateForm::Subtask, parts).into_iter().flat_map(|part| part.chunks);
    let value = |chunk: StateChunk| match chunk.bytes.try_into() {
        Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
        Err(_) => Err(StateError::DamagedChunk),
    };
    chunks.map(value).collect()
}

/// Takes a clock of event time out of a snapshot: the earliest of those of a name. One at the end of time is that of a
/// subtask that had ended; one that goes on has yet to come there.
pub(crate) fn take_clock(name: &str, parts: &mut Vec<StatePart>) -> Result<i64, StateError> {
    let clocks = take_numbers(name, parts)?;
    Ok(clocks.into_iter().filter(|&clock| clock != MAX_WATERMARK).min().unwrap_or(MIN_WATERMARK))
}

/// Takes the parts of a name and form out of a snapshot.
pub(crate) fn take_parts(name: &str, form: StateForm, parts: &mut Vec<StatePart>) -> Vec<StatePart> {
    parts.extract_if(.., |part| part.form == form && part.name == name).collect()
}

/// The same with the parts that are images of a store, which come first, as they have to be restored.
pub(crate) fn take_state(name: &str, form: StateForm, parts: &mut Vec<StatePart>) -> Vec<StatePart> {
    let mut own = take_parts(name, StateForm::Store, parts);
    own.extend(take_parts(name, form, parts));
    own
}

/// Expects that a snapshot has nothing more.
pub(crate) fn nothing_left(parts: Vec<StatePart>) -> Result<(), StateError> {
    match parts.into_iter().next() {
        None => Ok(()),
        Some(part) => Err(StateError::NotDeclared { name: part.name }),
    }
}
