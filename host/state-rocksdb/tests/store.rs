//! The store with the cache in front of it does what every backend does, and says what is wrong with its disk.

use std::path::Path;

use arrow_array::{Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use millstream_state::{
    BackingStore, ByteRows, CacheOptions, CachedBackend, KeyedBackend, Overflow, ReadTables, StateError,
    Table, conformance,
};
use millstream_state_rocksdb::{OpenImage, RocksMemory, RocksStore, StateFolder};
use millstream_types::{
    Cells, Columns, EncodedKeys, KeyGroupRange, MaxParallelism, SnapshotRequest, State, StateFiles,
    StatePart, hash_key,
};

fn max() -> MaxParallelism {
    MaxParallelism::new(8).expect("in range")
}

fn backend(folder: &StateFolder, states: &[State], memory: usize) -> CachedBackend {
    let rocks = RocksMemory::new(8 << 20, 1);
    let store = RocksStore::new(folder.next(), states, &rocks);
    CachedBackend::new(states, Box::new(store), CacheOptions { max: max(), memory })
}

fn open(files: &StateFiles) -> Box<dyn ReadTables> {
    Box::new(OpenImage::new(files.clone(), &RocksMemory::new(8 << 20, 1)).expect("its own image"))
}

#[test]
fn conforms_whatever_fits() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::create(parent.path()).expect("a folder");
    for memory in [0, 50_000] {
        conformance::run_with(|states| Box::new(backend(&folder, states, memory)), open);
    }
    let left = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 1, "of all stores that are gone, but for the lock");
}

#[test]
fn windows_and_sessions_conform_whatever_fits() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::create(parent.path()).expect("a folder");
    let rocks = RocksMemory::new(8 << 20, 1);
    let make = |memory| {
        let store = RocksStore::new(folder.next(), &[], &rocks);
        Overflow::new(Box::new(store), CacheOptions { max: max(), memory })
    };
    conformance::run_windows(&make, open);
    conformance::run_sessions(&make, open);
}

fn write(backend: &mut CachedBackend, numbers: std::ops::Range<i64>) {
    let mut keys = EncodedKeys::new();
    numbers.clone().map(i64::to_be_bytes).for_each(|key| keys.push(&key, hash_key(&key)));
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    let texts = StringViewArray::new_null(keys.len());
    let numbers: Int64Array = numbers.collect();
    let values = Columns::new(keys.len(), vec![std::sync::Arc::new(numbers), std::sync::Arc::new(texts)]);
    backend.begin(&keys).expect("a call");
    let cells = Cells { present: vec![true; keys.len()].into(), values };
    backend.write_values(0, &positions, cells).expect("a write");
    backend.commit().expect("a commit");
}

/// The values of keys that were written by [`write`].
fn read(backend: &mut CachedBackend, numbers: std::ops::Range<i64>) -> Vec<Option<i64>> {
    let mut keys = EncodedKeys::new();
    numbers.map(i64::to_be_bytes).for_each(|key| keys.push(&key, hash_key(&key)));
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    backend.begin(&keys).expect("a call");
    let cells = backend.read_values(0, &positions).expect("a read");
    backend.commit().expect("a commit");
    let values = cells.values.arrays[0].as_primitive::<Int64Type>();
    (0..keys.len()).map(|i| cells.present.value(i).then(|| values.value(i))).collect()
}

/// The parts that a subtask of so many gets of all that were written.
fn dealt(parts: &[StatePart], subtask: u32, parallelism: u32) -> Vec<StatePart> {
    let mine = |part: &StatePart| {
        let mut part = part.clone();
        part.chunks.retain(|c| c.key_group.is_some_and(|g| max().owner_of(g, parallelism) == subtask));
        part
    };
    parts.iter().map(mine).collect()
}

#[test]
fn state_goes_from_one_parallelism_to_another() {
    const KEYS: i64 = 20_000;
    let parent = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::create(parent.path()).expect("a folder");
    let states = conformance::states();
    let mut subtasks = vec![backend(&folder, &states, 100_000)];
    (0..KEYS).step_by(1000).for_each(|start| write(&mut subtasks[0], start..start + 1000));
    for parallelism in [2, 4, 3, 1] {
        let parts = subtasks
            .iter_mut()
            .flat_map(|s| s.snapshot(&states, max(), &SnapshotRequest::in_full(1)).expect("a snapshot"));
        let parts = conformance::portable(parts.collect(), max(), open);
        subtasks = (0..parallelism)
            .map(|subtask| {
                let mut restored = backend(&folder, &states, 100_000);
                let mine = dealt(&parts, subtask, parallelism);
                mine.iter().for_each(|part| restored.restore(&states, part).expect("its own state"));
                restored
            })
            .collect();
        let keys: usize = subtasks.iter().map(|s| s.key_count()).sum();
        assert_eq!(keys, KEYS as usize, "at {parallelism}");
    }
    let values = read(&mut subtasks[0], 0..KEYS);
    assert!(values.iter().enumerate().all(|(i, value)| *value == Some(i as i64)));
}

/// The image of a backend that has evicted keys.
fn image(backend: &mut CachedBackend) -> StatePart {
    let request = SnapshotRequest { checkpoint: 1, base: None, base_of_later: true };
    let parts = backend.snapshot(&conformance::states(), max(), &request).expect("a snapshot");
    let [part] = <[StatePart; 1]>::try_from(parts).expect("one part, which has everything");
    assert!(part.files.is_some());
    part
}

#[test]
fn images_go_from_one_parallelism_to_another() {
    const KEYS: i64 = 20_000;
    let parent = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::create(parent.path()).expect("a folder");
    let states = conformance::states();
    let mut subtasks = vec![backend(&folder, &states, 100_000)];
    (0..KEYS).step_by(1000).for_each(|start| write(&mut subtasks[0], start..start + 1000));
    for parallelism in [1, 2, 4, 3, 3, 1] {
        let images: Vec<StatePart> = subtasks.iter_mut().map(image).collect();
        let same = images.len() == parallelism as usize;
        subtasks = (0..parallelism)
            .map(|subtask| {
                let mut restored = backend(&folder, &states, 100_000);
                let range = KeyGroupRange::of(subtask, parallelism, max()).0;
                for (i, part) in images.iter().enumerate().filter(|(i, _)| !same || *i == subtask as usize) {
                    let files = part.files.as_ref().expect("an image");
                    let files = if same { files.clone() } else { files.of_groups(range.clone()) };
                    let part = StatePart { files: Some(files), ..part.clone() };
                    restored.restore(&states, &part).unwrap_or_else(|e| panic!("{i}: {e}"));
                }
                restored
            })
            .collect();
        drop(images);
        let keys: usize = subtasks.iter().map(|s| s.key_count()).sum();
        assert_eq!(keys, KEYS as usize, "at {parallelism}");
    }
    let values = read(&mut subtasks[0], 0..KEYS);
    assert!(values.iter().enumerate().all(|(i, value)| *value == Some(i as i64)));
    drop(subtasks);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1, "images go as well");
}

#[test]
fn an_image_stays_as_it_is_and_shares_files_with_the_next() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::create(parent.path()).expect("a folder");
    let states = conformance::states();
    let mut backend = backend(&folder, &states, 100_000);
    (0..50_000).step_by(1000).for_each(|start| write(&mut backend, start..start + 1000));
    let first = image(&mut backend);
    write(&mut backend, 50_000..51_000);
    let second = image(&mut backend);
    let names = |part: &StatePart| -> Vec<String> {
        let files = part.files.as_ref().expect("an image").files().iter();
        files.map(|file| file.name.clone()).filter(|name| name.ends_with(".sst")).collect()
    };
    let shared = names(&second).into_iter().filter(|name| names(&first).contains(name)).count();
    assert!(shared > 0 && shared < names(&second).len(), "{:?} {:?}", names(&first), names(&second));
    drop(backend);
    for (part, keys) in [(first, 50_000), (second, 51_000)] {
        let mut restored = self::backend(&folder, &states, 100_000);
        restored.restore(&states, &part).expect("its own image");
        assert_eq!(restored.key_count(), keys);
        assert_eq!(read(&mut restored, 50_000..50_001)[0].is_some(), keys > 50_000);
        assert!(read(&mut restored, 0..1000).iter().all(Option::is_some));
    }
}

fn rows(keys: &[&[u8]]) -> ByteRows {
    let mut rows = ByteRows::new();
    keys.iter().for_each(|key| rows.push_with(|out| out.extend_from_slice(key)));
    rows
}

#[test]
fn what_is_wrong_with_the_disk_is_told() {
    let parent = tempfile::tempdir().expect("a folder");
    let memory = RocksMemory::new(8 << 20, 1);
    let taken = parent.path().join("a file");
    std::fs::write(&taken, "").expect("a file");
    let mut store = RocksStore::new(taken.join("0"), &[], &memory);
    store.put(Table::Keys, b"key", b"value");
    let refused = store.apply().expect_err("no folder").to_string();
    assert!(refused.contains("a file/0` cannot be created: "), "{refused}");

    let mut store = RocksStore::new(parent.path().join("0"), &[], &memory);
    let read = store.read(Table::Keys, &rows(&[b"key"]), &mut |_, _| panic!("nothing is there"));
    assert!(read.is_ok() && !parent.path().join("0").exists(), "it is not opened before it is written");
    for number in 0..200_000u32 {
        store.put(Table::Keys, &number.to_be_bytes(), &[7; 100]);
        if number % 10_000 == 0 {
            store.apply().expect("a disk");
        }
    }
    store.apply().expect("a disk");
    damage(&parent.path().join("0"));
    let error = store.scan(Table::Keys, &[], None, &mut |_, _| Ok(std::ops::ControlFlow::Continue(())));
    let Err(StateError::Store { path, action, cause }) = error else { panic!("{error:?}") };
    assert!(
        path.ends_with('0') && action == "read" && cause.contains("Corruption"),
        "{path} {action} {cause}"
    );
    let read = store.read(Table::Keys, &rows(&[&0u32.to_be_bytes()]), &mut |_, _| Ok(()));
    assert!(matches!(read, Err(StateError::Store { .. })), "{read:?}");
}

/// Overwrites the files of a store but for their ends, where it looks when it opens them.
fn damage(folder: &Path) {
    use std::os::unix::fs::FileExt;

    let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let tables: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "sst")).collect();
    assert!(!tables.is_empty(), "so much has been written that there are files");
    for table in tables {
        let file = std::fs::OpenOptions::new().write(true).open(table).expect("a file");
        let length = file.metadata().expect("a file").len();
        file.write_all_at(&vec![0x5a; length as usize / 2], 0).expect("a disk");
    }
}
