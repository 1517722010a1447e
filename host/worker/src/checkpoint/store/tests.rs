//! Checkpoints of state on disk in a folder: what is stored, shared, given up and deleted.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
use millstream_snapshot::{OperatorMetadata, SnapshotKind, SnapshotMetadata, StateMetadata, SubtaskMetadata};
use millstream_state::{CacheOptions, CachedBackend, KeyedBackend, StoreHeader};
use millstream_state_rocksdb::{RocksMemory, RocksStore, StateFolder};
use millstream_storage::{JobStore, RunStore, Storage};
use millstream_types::{
    Cells, Column, Columns, DataType, EncodedKeys, MaxParallelism, SnapshotRequest, State, StateFiles,
    StateForm, StateKind, StatePart, hash_key,
};
use tempfile::TempDir;

use super::files::{as_chunks, as_files};

/// A subtask with its state, and the checkpoints that are taken of it.
struct Subject {
    folder: TempDir,
    run: RunStore,
    on_disk: StateFolder,
    backend: CachedBackend,
}

fn states() -> Vec<State> {
    let column = Column { name: "n".into(), data_type: DataType::Int64, nullable: false };
    vec![State {
        name: "count".into(),
        kind: StateKind::Value,
        columns: vec![column],
        version: 1,
        migrates_from: Vec::new(),
        redistribution: Default::default(),
    }]
}

fn backend(folder: &StateFolder) -> CachedBackend {
    let store = RocksStore::new(folder.next(), &states(), &RocksMemory::new(8 << 20, 1));
    let options = CacheOptions { max: MaxParallelism::DEFAULT, memory: 10_000 };
    CachedBackend::new(&states(), Box::new(store), options)
}

fn keys(numbers: impl Iterator<Item = i64>) -> EncodedKeys {
    let mut keys = EncodedKeys::new();
    numbers.map(i64::to_be_bytes).for_each(|key| keys.push(&key, hash_key(&key)));
    keys
}

fn write(backend: &mut CachedBackend, keys: EncodedKeys, value: i64) {
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    let column = Int64Array::from(vec![value; keys.len()]);
    let values = Columns::new(keys.len(), vec![std::sync::Arc::new(column)]);
    backend.begin(&keys).expect("a call");
    let cells = Cells { present: vec![true; keys.len()].into(), values };
    backend.write_values(0, &positions, cells).expect("a write");
    backend.commit().expect("a commit");
}

fn read(backend: &mut CachedBackend, numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let keys = keys(numbers);
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    backend.begin(&keys).expect("a call");
    let cells = backend.read_values(0, &positions).expect("a read");
    backend.commit().expect("a commit");
    cells.values.arrays[0].as_primitive::<Int64Type>().values().to_vec()
}

impl Subject {
    async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let storage = Storage::folder(&folder.path().join("checkpoints")).expect("a place");
        let run = JobStore::new(storage, "job").begin_run(None).await.expect("a run");
        let on_disk = StateFolder::create(&folder.path().join("state")).expect("a folder");
        let mut backend = backend(&on_disk);
        for start in (0..20_000).step_by(1000) {
            write(&mut backend, keys(start..start + 1000), 0);
        }
        Self { folder, run, on_disk, backend }
    }

    /// What the subtask hands over at a barrier.
    fn image(&mut self) -> (StatePart, StateFiles) {
        let request = SnapshotRequest { checkpoint: 1, base: None, base_of_later: true };
        let parts = self.backend.snapshot(&states(), MaxParallelism::DEFAULT, &request).expect("a snapshot");
        let [mut part] = <[StatePart; 1]>::try_from(parts).expect("one part");
        let files = part.files.take().expect("an image");
        (part, files)
    }

    /// Stores an image as checkpoint `id` upon another one.
    async fn store(
        &self,
        id: u64,
        image: (StatePart, StateFiles),
        base: Option<&SnapshotMetadata>,
    ) -> SnapshotMetadata {
        let base = base.map(|metadata| (metadata.checkpoint, store_of(metadata)));
        let stored = as_files(&self.run.checkpoint(id), "subtask-0-0", &image.0, &image.1, base).await;
        metadata(id, stored.expect("a disk"))
    }

    async fn complete(&self, metadata: &SnapshotMetadata) {
        self.run.checkpoint(metadata.checkpoint).put_metadata(metadata).await.expect("a disk");
    }

    /// The files that there are of checkpoints, by name.
    fn files(&self) -> BTreeSet<String> {
        let run = self.folder.path().join("checkpoints/job/run-00001");
        let entries = |path: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
        };
        let files =
            entries(&run).into_iter().filter(|path| path.is_dir()).flat_map(|folder| entries(&folder));
        let name = |path: PathBuf| path.strip_prefix(&run).expect("below it").to_string_lossy().into_owned();
        files.map(name).collect()
    }

    /// A backend that has been restored from a checkpoint.
    async fn restored(&self, id: u64) -> CachedBackend {
        let snapshot = self.run.load(id).await.expect("a checkpoint that is whole");
        let store = store_of(&snapshot.metadata);
        let millstream_snapshot::Location::Inline(bytes) = &store.places[0] else { panic!("no header") };
        let header = StoreHeader::decode(bytes).expect("a header");
        let folder = self.on_disk.next();
        std::fs::create_dir_all(&folder).expect("a folder");
        let fetched = snapshot.fetch(store, &header.files, &folder).await.expect("good files");
        let part = StatePart::plain(
            "store",
            StateForm::Store,
            vec![millstream_types::StateChunk::item(bytes.clone())],
        );
        let part = StatePart { files: Some(StateFiles::new(folder, fetched)), ..part };
        let mut restored = backend(&self.on_disk);
        restored.restore(&states(), &part).expect("its own files");
        restored
    }
}

fn store_of(metadata: &SnapshotMetadata) -> &StateMetadata {
    metadata.states().find(|state| state.form == StateForm::Store).expect("it has a store")
}

fn metadata(checkpoint: u64, states: Vec<StateMetadata>) -> SnapshotMetadata {
    let operator = OperatorMetadata {
        id: "counts".into(),
        key: Vec::new(),
        windows: String::new(),
        subtasks: vec![SubtaskMetadata { states, ..SubtaskMetadata::default() }],
        shared: Vec::new(),
    };
    SnapshotMetadata {
        checkpoint,
        kind: SnapshotKind::Checkpoint,
        job: "job".into(),
        max_parallelism: MaxParallelism::DEFAULT,
        triggered: 0,
        completed: 0,
        operators: vec![operator],
        program: None,
    }
}

/// The files that checkpoints refer to, with their metadata.
fn referred(kept: &[SnapshotMetadata]) -> BTreeSet<String> {
    let of_one = |metadata: &SnapshotMetadata| {
        let own = format!("chk-{}/", metadata.checkpoint);
        let file =
            |file: &str| file.strip_prefix("../").map_or_else(|| format!("{own}{file}"), str::to_owned);
        let files: Vec<String> = metadata.files().into_iter().map(file).collect();
        files.into_iter().chain([format!("{own}_metadata")]).collect::<Vec<_>>()
    };
    kept.iter().flat_map(of_one).collect()
}

#[tokio::test]
async fn of_two_at_once_one_is_given_up_and_the_other_is_whole() {
    let mut subject = Subject::new().await;
    let image = subject.image();
    let first = subject.store(1, image, None).await;
    subject.complete(&first).await;
    write(&mut subject.backend, keys(0..10_000), 2);
    let second_image = subject.image();
    write(&mut subject.backend, keys(5000..15_000), 3);
    let third_image = subject.image();
    // Both build on the first, at the same time.
    let (second, third) = tokio::join!(
        subject.store(2, second_image, Some(&first)),
        subject.store(3, third_image, Some(&first))
    );
    let own =
        |metadata: &SnapshotMetadata| metadata.files().iter().filter(|file| !file.contains('/')).count();
    assert!(own(&second) > 0 && own(&third) > 0, "{second:?} {third:?}");
    assert!(own(&third) < third.files().len(), "it refers to files of the first");
    // The second is never complete; nothing of it is left once what is not needed is deleted.
    subject.complete(&third).await;
    subject.run.retain(1, &[]).await.expect("a disk");
    assert_eq!(subject.files(), referred(std::slice::from_ref(&third)));
    let mut restored = subject.restored(3).await;
    let values = read(&mut restored, 0..20_000);
    let expected = (0..20_000).map(|n| match n {
        0..5000 => 2,
        5000..15_000 => 3,
        _ => 0,
    });
    assert_eq!(values, expected.collect::<Vec<i64>>());
    assert_eq!(restored.key_count(), 20_000);
}

#[tokio::test]
async fn a_hundred_checkpoints_leave_the_files_that_the_last_three_refer_to() {
    let mut subject = Subject::new().await;
    let mut kept: Vec<SnapshotMetadata> = Vec::new();
    for id in 1..=100 {
        write(&mut subject.backend, keys((id * 100..id * 100 + 50).map(|n| n % 20_000)), id);
        let image = subject.image();
        let next = subject.store(id as u64, image, kept.last()).await;
        subject.complete(&next).await;
        kept.push(next);
        kept.drain(..kept.len().saturating_sub(3));
        subject.run.retain(3, &[]).await.expect("a disk");
        if id % 33 == 1 {
            assert_eq!(subject.files(), referred(&kept), "after {id}");
        }
    }
    let mut restored = subject.restored(98).await;
    let values = read(&mut restored, [100, 9849, 9850, 9900, 10_000].into_iter());
    assert_eq!(values, [1, 98, 0, 0, 0]);
    // A backend that goes on from a checkpoint shares its files.
    subject.backend = restored;
    write(&mut subject.backend, keys([7].into_iter()), 7);
    let image = subject.image();
    let next = subject.store(101, image, kept.first()).await;
    assert!(next.files().iter().any(|file| file.starts_with("../")), "{:?}", next.files());
}

#[tokio::test]
async fn a_savepoint_has_chunks_that_anybody_reads() {
    let mut subject = Subject::new().await;
    let (part, files) = subject.image();
    let folder = subject.run.checkpoint(1);
    let stored = as_chunks(&folder, "subtask-0-0".into(), &part, files, MaxParallelism::DEFAULT).await;
    let metadata = metadata(1, stored.expect("a disk"));
    subject.complete(&metadata).await;
    let snapshot = subject.run.load(1).await.expect("a checkpoint that is whole");
    let mut memory = millstream_state::MemoryBackend::new(&states());
    for state in snapshot.metadata.states() {
        let part = snapshot.read(state).await.expect("good chunks");
        memory.restore(&states(), &part).expect("its own state");
    }
    assert_eq!(memory.key_count(), 20_000);
}
