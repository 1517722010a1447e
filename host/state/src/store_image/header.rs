//! What has to be known of a store's files to read them. `host/snapshot/FORMAT.md` specifies the bytes.

use millstream_types::{Column, DataType, State, StateChunk, StateForm, StateKind, StatePart};

use crate::{
    StateError,
    snapshot::{put_bytes, put_u32, take_bytes, take_u8, take_u32, take_u64},
};

/// What the files of an image are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHeader {
    /// Of all images in which a name stands for the same file.
    pub lineage: u64,
    /// How many keys there are; of windows and sessions, how many entries.
    pub keys: u64,
    /// How many timers there are: on event time, on processing time, and expiries.
    pub timers: [u64; 3],
    /// All keyed states of the operator, in the order in which rows have them; or its windows or sessions, alone.
    pub states: Vec<StoredState>,
    /// The names of the files.
    pub files: Vec<String>,
}

/// A state that a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// Its name.
    pub name: String,
    /// What it is.
    pub form: StateForm,
    /// The version of its columns.
    pub version: u32,
    /// The columns of its rows.
    pub columns: Vec<Column>,
}

impl StoredState {
    /// The states that a function declares.
    pub fn declared(states: &[State]) -> Vec<Self> {
        let stored = |state: &State| Self {
            name: state.name.clone(),
            form: form_of(state.kind),
            version: state.version,
            columns: state.columns.clone(),
        };
        states.iter().map(stored).collect()
    }

    /// Whether windows or sessions are in it.
    fn is_of_windows(&self) -> bool {
        matches!(
            self.form,
            StateForm::Accumulators
                | StateForm::Contents
                | StateForm::SessionAccumulators
                | StateForm::SessionContents
        )
    }

    /// Whether it has rows in a store.
    fn has_rows(&self) -> bool {
        !matches!(self.form, StateForm::Broadcast | StateForm::Items)
    }
}

impl StoreHeader {
    /// The header of a part, which is its first chunk.
    ///
    /// # Errors
    /// If the part has none that can be read.
    pub fn of(part: &StatePart) -> Result<Self, StateError> {
        Self::decode(&part.chunks.first().ok_or(StateError::DamagedChunk)?.bytes)
    }

    /// The part of an image that has been taken.
    pub(crate) fn into_part(self, name: &str, files: millstream_types::StateFiles) -> StatePart {
        let chunks = vec![StateChunk::item(self.encode())];
        StatePart { files: Some(files), ..StatePart::plain(name, StateForm::Store, chunks) }
    }

    /// Whether rows of the states that a function declares stand in the files as they would be written now.
    pub fn fits(&self, states: &[State]) -> bool {
        self.states == StoredState::declared(states)
    }

    /// The windows or sessions that the files are of, if they are.
    pub fn windows(&self) -> Option<&StoredState> {
        self.states.first().filter(|state| state.is_of_windows())
    }

    /// The states that the store has and timers, as parts without chunks, in the order in which a reader has them.
    pub fn parts(&self) -> Vec<StatePart> {
        let of_state = |state: &StoredState| {
            let part = StatePart::plain(&state.name, state.form, Vec::new());
            StatePart { version: state.version, columns: state.columns.clone(), ..part }
        };
        let timers = [
            StatePart::plain(crate::EVENT_TIMERS, StateForm::EventTimers, Vec::new()),
            StatePart::plain(crate::PROCESSING_TIMERS, StateForm::ProcessingTimers, Vec::new()),
            StatePart::plain(crate::EXPIRIES, StateForm::Expiries, Vec::new()),
        ];
        // Windows have none, and sessions have them in themselves.
        let timers = timers.into_iter().filter(|_| self.windows().is_none());
        self.states.iter().filter(|state| state.has_rows()).map(of_state).chain(timers).collect()
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        [self.lineage, self.keys, self.timers[0], self.timers[1], self.timers[2]]
            .iter()
            .for_each(|number| out.extend(number.to_le_bytes()));
        put_u32(self.states.len() as u32, &mut out);
        for state in &self.states {
            put_bytes(state.name.as_bytes(), &mut out);
            out.push(state.form.number());
            put_u32(state.version, &mut out);
            put_u32(state.columns.len() as u32, &mut out);
            for column in &state.columns {
                put_bytes(column.name.as_bytes(), &mut out);
                put_bytes(column.data_type.name().as_bytes(), &mut out);
                out.push(u8::from(column.nullable));
            }
        }
        put_u32(self.files.len() as u32, &mut out);
        self.files.iter().for_each(|name| put_bytes(name.as_bytes(), &mut out));
        out
    }

    /// Reads what [`StoreHeader::encode`] has written.
    ///
    /// # Errors
    /// If it is not that, or a name is none of a file in a folder.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, StateError> {
        let from = &mut bytes;
        let (lineage, keys) = (take_u64(from)?, take_u64(from)?);
        let timers = [take_u64(from)?, take_u64(from)?, take_u64(from)?];
        let (mut states, mut files) = (Vec::new(), Vec::new());
        for _ in 0..take_u32(from)? {
            states.push(take_state(from)?);
        }
        for _ in 0..take_u32(from)? {
            let name = take_text(from)?;
            if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
                return Err(StateError::DamagedChunk);
            }
            files.push(name);
        }
        if from.is_empty() {
            Ok(Self { lineage, keys, timers, states, files })
        } else {
            Err(StateError::DamagedChunk)
        }
    }
}

/// The form of the part that has a state.
pub(super) fn form_of(kind: StateKind) -> StateForm {
    match kind {
        StateKind::Value => StateForm::Value,
        StateKind::List => StateForm::List,
        StateKind::Map => StateForm::Map,
        StateKind::Broadcast => StateForm::Broadcast,
        StateKind::Operator => StateForm::Items,
    }
}

/// The kind of a state that a function declares; none of windows and sessions.
pub(super) fn kind_of(form: StateForm) -> Option<StateKind> {
    let all = [StateKind::Value, StateKind::List, StateKind::Map, StateKind::Broadcast, StateKind::Operator];
    all.into_iter().find(|&kind| form_of(kind) == form)
}

fn take_state(from: &mut &[u8]) -> Result<StoredState, StateError> {
    let name = take_text(from)?;
    let form = StateForm::of_number(take_u8(from)?).ok_or(StateError::DamagedChunk)?;
    let version = take_u32(from)?;
    let mut columns = Vec::new();
    for _ in 0..take_u32(from)? {
        let name = take_text(from)?;
        let data_type: DataType = take_text(from)?.parse().map_err(|_| StateError::DamagedChunk)?;
        columns.push(Column { name, data_type, nullable: take_u8(from)? != 0 });
    }
    let state = StoredState { name, form, version, columns };
    if kind_of(form).is_some() || state.is_of_windows() { Ok(state) } else { Err(StateError::DamagedChunk) }
}

fn take_text(from: &mut &[u8]) -> Result<String, StateError> {
    let text = take_bytes(from)?.to_vec();
    String::from_utf8(text).map_err(|_| StateError::DamagedChunk)
}

/// The name of the part that has keyed state; one of windows or sessions has the name of these.
pub const KEYED_STORE: &str = "store";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    fn header() -> StoreHeader {
        StoreHeader {
            lineage: 7,
            keys: 1000,
            timers: [3, 4, 5],
            states: StoredState::declared(&conformance::states()),
            files: vec!["000012.sst".into(), "CURRENT".into()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let header = header();
        assert_eq!(StoreHeader::decode(&header.encode()), Ok(header.clone()));
        assert!(header.fits(&conformance::states()) && !header.fits(&conformance::states()[1..]));
        let parts: Vec<_> = header.parts().iter().map(|p| format!("{} {:?}", p.name, p.form)).collect();
        let expected = "value Value, list List, map Map, all Value, event EventTimers, processing ProcessingTimers, \
             expiry Expiries";
        assert_eq!(parts.join(", "), expected);
    }

    #[test]
    fn the_bytes_are_for_ever() {
        let mut header = header();
        header.states.truncate(1);
        let hash = millstream_types::hash_key(&header.encode());
        assert_eq!(format!("{hash:016x}"), "218d98f15293a56d");
    }

    #[test]
    fn what_is_cut_or_leads_elsewhere_is_refused() {
        let bytes = header().encode();
        assert!((0..bytes.len()).all(|length| StoreHeader::decode(&bytes[..length]).is_err()));
        for name in ["", "../x", "a/b", ".."] {
            let header = StoreHeader { files: vec![name.into()], ..header() };
            assert_eq!(StoreHeader::decode(&header.encode()), Err(StateError::DamagedChunk));
        }
    }
}
