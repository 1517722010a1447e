//! States that build on what an earlier snapshot has.
//!
//! What a key group has is its last whole chunk and the changes behind that, in order. A snapshot names all of them,
//! wherever they are, so that a restore looks at no other metadata, and a file is needed as long as a snapshot that is
//! kept names it.

use std::collections::BTreeMap;

use millstream_types::{ChunkKind, KeyGroup};

use crate::{ChunkMetadata, Location, StateMetadata};

/// States of which one cannot build on the other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The rows differ.
    #[error("changes of state `{name}` have other columns than what they build on")]
    OtherColumns {
        /// The state.
        name: String,
    },
    /// More than can be numbered.
    #[error("the chunks of state `{name}` lie in {places} files; at most 65535 can be named")]
    TooManyPlaces {
        /// The state.
        name: String,
        /// How many files there are.
        places: usize,
    },
}

impl StateMetadata {
    /// All that there is of a state of which this has some key groups whole and changes of others: of each group that
    /// has no whole chunk here, what `base` has of it, and then what is here. `moved` says what a file of the base is
    /// called from here.
    ///
    /// # Errors
    /// If the base has other columns, or the chunks would lie in too many files.
    pub fn upon(&self, base: &Self, moved: impl Fn(&str) -> String) -> Result<Self, ChainError> {
        if (self.version, &self.columns) != (base.version, &base.columns) {
            return Err(ChainError::OtherColumns { name: self.name.clone() });
        }
        let mut groups: BTreeMap<Option<KeyGroup>, Vec<(Piece<'_>, ChunkMetadata)>> = BTreeMap::new();
        for chunk in &base.chunks {
            let piece = Piece::of(chunk, &base.places).map_file(&moved);
            groups.entry(chunk.key_group).or_default().push((piece, *chunk));
        }
        for chunk in &self.chunks {
            let of_group = groups.entry(chunk.key_group).or_default();
            if chunk.kind == ChunkKind::Whole {
                of_group.clear();
            }
            of_group.push((Piece::of(chunk, &self.places), *chunk));
        }
        let mut placed = Placed::default();
        // A whole chunk of nothing has done what it is for.
        for (piece, chunk) in groups.into_values().flatten().filter(|(_, chunk)| chunk.length > 0) {
            placed.add(piece, chunk);
        }
        let places = placed.places.len();
        let Placed { places: named, chunks, .. } = placed;
        if places > usize::from(u16::MAX) {
            return Err(ChainError::TooManyPlaces { name: self.name.clone(), places });
        }
        let (name, columns) = (self.name.clone(), self.columns.clone());
        Ok(Self { name, form: self.form, version: self.version, columns, places: named, chunks })
    }
}

/// Where a chunk is.
enum Piece<'a> {
    Inline(&'a [u8]),
    File(String),
}

impl<'a> Piece<'a> {
    fn of(chunk: &ChunkMetadata, places: &'a [Location]) -> Self {
        match &places[usize::from(chunk.place)] {
            Location::Inline(bytes) => Piece::Inline(&bytes[chunk.offset as usize..chunk.end() as usize]),
            Location::File(path) => Piece::File(path.clone()),
        }
    }

    fn map_file(self, moved: impl Fn(&str) -> String) -> Self {
        match self {
            Piece::File(path) => Piece::File(moved(&path)),
            inline => inline,
        }
    }
}

/// Chunks with their places: each file once, and what is inline in one.
#[derive(Default)]
struct Placed {
    places: Vec<Location>,
    chunks: Vec<ChunkMetadata>,
    inline: Option<usize>,
    files: BTreeMap<String, usize>,
}

impl Placed {
    fn add(&mut self, piece: Piece<'_>, mut chunk: ChunkMetadata) {
        let next = self.places.len();
        let place = match piece {
            Piece::File(path) => *self.files.entry(path).or_insert_with_key(|path| {
                self.places.push(Location::File(path.clone()));
                next
            }),
            Piece::Inline(bytes) => {
                let place = *self.inline.get_or_insert_with(|| {
                    self.places.push(Location::Inline(Vec::new()));
                    next
                });
                if let Location::Inline(all) = &mut self.places[place] {
                    chunk.offset = all.len() as u64;
                    all.extend_from_slice(bytes);
                }
                place
            }
        };
        // Too many are refused in the end.
        chunk.place = place as u16;
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use millstream_types::{StateChunk, StateForm, StatePart};

    use super::*;

    fn stored(chunks: Vec<StateChunk>, file: Option<&str>) -> StateMetadata {
        let part = StatePart::plain("s", StateForm::Value, chunks);
        let all = || part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
        let location = file.map_or_else(|| Location::Inline(all()), |file| Location::File(file.into()));
        StateMetadata::of_part(&part, location, 0)
    }

    fn whole(group: u16, bytes: &[u8]) -> StateChunk {
        StateChunk::whole(KeyGroup(group), bytes.to_vec())
    }

    fn changes(group: u16, bytes: &[u8]) -> StateChunk {
        StateChunk::changes(KeyGroup(group), bytes.to_vec())
    }

    fn show(state: &StateMetadata) -> String {
        let chunk = |c: &ChunkMetadata| {
            let at = match &state.places[usize::from(c.place)] {
                Location::Inline(bytes) => {
                    format!("'{}'", String::from_utf8_lossy(&bytes[c.offset as usize..c.end() as usize]))
                }
                Location::File(path) => format!("{path} {}..{}", c.offset, c.end()),
            };
            format!("{}: {:?} {at}\n", c.key_group.expect("keyed").0, c.kind)
        };
        state.chunks.iter().map(chunk).collect()
    }

    #[test]
    fn a_group_is_its_last_whole_chunk_and_what_comes_behind() {
        let moved = |path: &str| format!("../{path}");
        let first = stored(vec![whole(1, b"aa"), whole(2, b"bbb"), whole(3, b"c")], Some("one"));
        let second = stored(vec![changes(1, b"d"), whole(2, b"ee"), changes(4, b"f")], None);
        let second = second.upon(&first, moved).expect("fits");
        let third = stored(vec![changes(1, b"g"), whole(3, b""), changes(4, b"h")], Some("three"));
        let third = third.upon(&second, moved).expect("fits");
        expect![[r"
            1: Whole ../../one 0..2
            1: Changes 'd'
            1: Changes three 0..1
            2: Whole 'ee'
            4: Changes 'f'
            4: Changes three 1..2
        "]]
        .assert_eq(&show(&third));
        assert_eq!(third.places.len(), 3, "{:?}", third.places);
    }

    #[test]
    fn what_has_other_columns_is_no_base() {
        let (base, mut later) = (stored(vec![whole(1, b"a")], None), stored(vec![changes(1, b"b")], None));
        later.version = 2;
        let error = later.upon(&base, str::to_owned).expect_err("another version");
        assert_eq!(error, ChainError::OtherColumns { name: "s".into() });
    }
}
