//! What every backend of keyed state has to do, as tests that take the backend's constructor.
//!
//! A backend's own tests call [`run`] once; each check gets a backend of its own, made for [`states`]. Those of a store call
//! [`run_windows`] and [`run_sessions`] as well.

mod expiry;
mod keys;
mod lists;
mod maps;
mod sessions;
mod snapshots;
mod timers;
mod values;
mod windows;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use arrow_buffer::BooleanBuffer;
use millstream_types::{
    Cells, Column, Columns, DataType, EncodedKeys, KeyGroup, MaxParallelism, State, StateFiles, StateKind,
    StatePart, hash_key,
};

pub use sessions::run_sessions;
pub use windows::{MakeOverflow, run_windows};

use crate::{ImageReader, KeyedBackend, KeyedContext, ReadTables, StateId, StoreHeader};

/// Runs every check.
///
/// # Panics
/// If the backend does not do what is asked of it.
pub fn run(make: impl Fn(&[State]) -> Box<dyn KeyedBackend>) {
    run_with(make, |_| panic!("it has no store"));
}

/// The same for a backend with a store whose images `open` opens.
///
/// # Panics
/// If the backend does not do what is asked of it.
pub fn run_with(make: impl Fn(&[State]) -> Box<dyn KeyedBackend>, open: OpenImage) {
    let fresh = || Subject { keyed: KeyedContext::new(&states(), make(&states())), open };
    values::run(fresh);
    lists::run(fresh);
    maps::run(fresh);
    timers::run(fresh);
    keys::run(fresh);
    expiry::run(fresh);
    snapshots::run(fresh);
}

/// The states that the checks use: one of each kind with a column that is not null and one that may be, and a value of
/// every type.
pub fn states() -> Vec<State> {
    let column = |name: &str, data_type, nullable| Column { name: name.into(), data_type, nullable };
    let pair = || vec![column("n", DataType::Int64, false), column("text", DataType::Utf8, true)];
    let all = DataType::ALL.iter().map(|&t| column(t.name(), t, true)).collect();
    let state = |name: &str, kind, columns| State {
        name: name.into(),
        kind,
        columns,
        version: 1,
        migrates_from: Vec::new(),
        redistribution: Default::default(),
    };
    vec![
        state("value", StateKind::Value, pair()),
        state("list", StateKind::List, pair()),
        state("map", StateKind::Map, pair()),
        state("all", StateKind::Value, all),
    ]
}

/// Opens the files of an image.
pub type OpenImage = fn(&StateFiles) -> Box<dyn ReadTables>;

/// Parts with the images among them as the chunks that a backend in memory would have written.
///
/// # Panics
/// If an image cannot be read.
pub fn portable(parts: Vec<StatePart>, max: MaxParallelism, open: OpenImage) -> Vec<StatePart> {
    let mut made = Vec::new();
    for part in parts {
        let Some(files) = &part.files else {
            made.push(part);
            continue;
        };
        let header = StoreHeader::of(&part).expect("a header");
        let mut reader = ImageReader::new(&header, files.clone(), open(files));
        for (at, empty) in header.parts().into_iter().enumerate() {
            let groups = (0..max.groups()).map(KeyGroup);
            let pieces = groups.filter_map(|group| reader.piece(at, group).expect("a good image"));
            made.push(StatePart { chunks: pieces.flat_map(|piece| piece.chunks).collect(), ..empty });
        }
    }
    made
}

/// A row of the pair states.
type Row = (i64, Option<&'static str>);

/// A backend that is checked, with the words that checks are written in.
struct Subject {
    keyed: KeyedContext,
    open: OpenImage,
}

impl Subject {
    /// Starts a call over the keys of these names.
    fn begin(&mut self, names: &[&str]) {
        let mut keys = EncodedKeys::new();
        names.iter().for_each(|n| keys.push(n.as_bytes(), hash_key(n.as_bytes())));
        self.keyed.begin(&keys).expect("a call");
    }

    fn commit(&mut self) {
        self.keyed.commit().expect("a commit");
    }

    /// Runs one call and commits it.
    fn call<T>(&mut self, names: &[&str], run: impl FnOnce(&mut Self) -> T) -> T {
        self.begin(names);
        let made = run(self);
        self.commit();
        made
    }

    fn id(&self, kind: StateKind, name: &str) -> StateId {
        self.keyed.state(kind, name).expect("a declared state")
    }
}

/// Columns of the pair states.
fn columns(rows: &[Row]) -> Columns {
    let numbers: ArrayRef = Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<StringViewArray>());
    Columns::new(rows.len(), vec![numbers, texts])
}

/// Cells of the pair states; `None` is absent.
fn cells(rows: &[Option<Row>]) -> Cells {
    let present: BooleanBuffer = rows.iter().map(Option::is_some).collect();
    let values: Vec<Row> = rows.iter().map(|r| r.unwrap_or((-1, Some("means nothing")))).collect();
    Cells { present, values: columns(&values) }
}

/// Row `index` of the pair states' columns as text: `5 abc`, null as `-`.
fn show(columns: &Columns, index: usize) -> String {
    let number = columns.arrays[0].as_primitive::<Int64Type>().value(index);
    let text = columns.arrays[1].as_string_view();
    format!("{number} {}", if text.is_null(index) { "-" } else { text.value(index) })
}

/// Cells as text, `absent` where there is none.
fn show_cells(cells: &Cells) -> Vec<String> {
    let row = |(i, present)| if present { show(&cells.values, i) } else { "absent".to_owned() };
    cells.present.iter().enumerate().map(row).collect()
}
