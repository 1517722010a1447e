//! Checkpoints in a real folder: what is found again, what is deleted, and what is said about damage.

use std::{fs, path::Path};

use millstream_snapshot::{OperatorMetadata, SnapshotKind, SnapshotMetadata, StateMetadata, SubtaskMetadata};
use millstream_types::{KeyGroup, MaxParallelism, StateChunk, StateForm, StatePart};
use tempfile::TempDir;

use super::*;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(work)
}

fn store(folder: &Path) -> JobStore {
    JobStore::new(Storage::folder(folder).expect("a temporary folder"), "job")
}

fn part() -> StatePart {
    let chunk = |group, bytes: &[u8]| StateChunk { key_group: Some(KeyGroup(group)), bytes: bytes.to_vec() };
    StatePart::plain("count", StateForm::Value, vec![chunk(1, b"one"), chunk(7, b"seven")])
}

/// Stores a checkpoint whose state lies in a file.
async fn checkpoint(run: &RunStore, id: u64) {
    let part = part();
    let bytes: Vec<u8> = part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    let location = run.put_state(id, "count-0", bytes).await.expect("stored");
    let state = StateMetadata::of_part(&part, location, 0);
    let subtask = SubtaskMetadata { ended: false, states: vec![state] };
    let operator = OperatorMetadata { id: "count".into(), subtasks: vec![subtask], shared: Vec::new() };
    let metadata = SnapshotMetadata {
        checkpoint: id,
        kind: SnapshotKind::Checkpoint,
        job: "job".into(),
        max_parallelism: MaxParallelism::DEFAULT,
        triggered: 0,
        completed: 0,
        operators: vec![operator],
    };
    run.put_metadata(&metadata).await.expect("stored");
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_stored_is_found_and_read_again() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let store = store(folder.path());
        assert!(store.latest().await.expect("readable").is_none());
        let first = store.begin_run(None).await.expect("stored");
        let (_, found) = store.latest().await.expect("readable").expect("a run");
        assert!(found.is_none(), "it begins at the beginning");
        checkpoint(&first, 3).await;
        checkpoint(&first, 4).await;
        let (again, found) = store.latest().await.expect("readable").expect("a run");
        let found = found.expect("a checkpoint");
        assert_eq!((found.metadata.checkpoint, again.next_id().await.expect("readable")), (4, 5));
        let state = &found.metadata.operators[0].subtasks[0].states[0];
        assert_eq!(found.read(state).await.expect("whole"), part());
        let named = JobStore::open(found.name().as_ref()).await.expect("the name is its folder");
        assert_eq!(named.read(state).await.expect("whole"), part());
    });
}

#[test]
fn a_new_run_goes_on_from_its_origin_and_not_from_earlier_runs() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let store = store(folder.path());
        let first = store.begin_run(None).await.expect("stored");
        checkpoint(&first, 1).await;
        checkpoint(&first, 2).await;
        store.begin_run(None).await.expect("stored");
        let (_, found) = store.latest().await.expect("readable").expect("a run");
        assert!(found.is_none());
        let origin = first.load(1).await.expect("whole").name();
        store.begin_run(Some(&origin)).await.expect("stored");
        let (_, found) = store.latest().await.expect("readable").expect("a run");
        assert_eq!(found.expect("its origin").name(), origin);
    });
}

#[test]
fn old_checkpoints_go_and_leave_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let run = store(folder.path()).begin_run(None).await.expect("stored");
        for id in 1..=100 {
            if id % 10 == 5 {
                run.put_state(id, "torn-0", vec![0]).await.expect("stored");
            } else {
                checkpoint(&run, id).await;
            }
            run.retain(3).await.expect("deleted");
        }
        let left = run.checkpoints().await.expect("readable");
        assert_eq!(left, [98, 99, 100].map(|id| CheckpointInfo { id, complete: true }));
    });
    assert_eq!(files(folder.path()).len(), 3 * 2 + 1, "metadata and state each, and the run");
}

#[test]
fn damage_is_named_and_the_checkpoint_before_offered() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let store = store(folder.path());
        let run = store.begin_run(None).await.expect("stored");
        checkpoint(&run, 1).await;
        checkpoint(&run, 2).await;
        let state = folder.path().join("job/run-00001/chk-2/count-0");
        fs::write(&state, b"oneseveN").expect("writable");
        let found = run.load(2).await.expect("as long as it was");
        let damaged = found.read(&found.metadata.operators[0].subtasks[0].states[0]).await;
        let error = damaged.expect_err("altered").in_full();
        assert!(error.contains("count-0") && error.contains("damaged at byte 3"), "{error}");
        fs::write(&state, b"onesev").expect("writable");
        let error = store.latest().await.expect_err("cut short").in_full();
        assert!(error.contains("count-0: the file is cut short: 6 bytes found, 8 expected"), "{error}");
        assert!(error.contains("--from ") && error.contains("run-00001/chk-1`"), "{error}");
        fs::write(folder.path().join("job/run-00001/chk-1/_metadata"), b"MLST").expect("writable");
        let error = store.latest().await.expect_err("both").in_full();
        assert!(!error.contains("chk-1"), "{error}");
    });
}

#[test]
fn a_number_is_used_once() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let run = store(folder.path()).begin_run(None).await.expect("stored");
        checkpoint(&run, 1).await;
        let metadata = run.load(1).await.expect("whole").metadata;
        let error = run.put_metadata(&metadata).await.expect_err("it is there").to_string();
        assert!(error.contains("chk-1/_metadata"), "{error}");
    });
}

#[test]
fn places_that_are_none_are_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    for (location, word) in
        [("s3://bucket/x", "`s3:`"), ("", "path of a folder"), ("file:", "path of a folder")]
    {
        let error = Storage::open(location, folder.path()).expect_err(location).to_string();
        assert!(error.contains(word), "{error}");
    }
    for location in ["a", "file:b", "./c"] {
        Storage::open(location, folder.path()).expect(location);
    }
    assert!(["a", "b", "c"].iter().all(|name| folder.path().join(name).is_dir()));
}
