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

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn store(folder: &Path) -> JobStore {
    JobStore::new(Storage::folder(folder).expect("a temporary folder"), "job")
}

fn part() -> StatePart {
    let chunk = |group, bytes: &[u8]| StateChunk::whole(KeyGroup(group), bytes.to_vec());
    StatePart::plain("count", StateForm::Value, vec![chunk(1, b"one"), chunk(7, b"seven")])
}

/// Stores a checkpoint whose state lies in a file.
async fn checkpoint(run: &RunStore, id: u64) {
    let part = part();
    let bytes: Vec<u8> = part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    let location = run.checkpoint(id).put_state("count-0", bytes).await.expect("stored");
    let state = StateMetadata::of_part(&part, location, 0);
    run.checkpoint(id).put_metadata(&metadata(id, state)).await.expect("stored");
}

fn metadata(id: u64, state: StateMetadata) -> SnapshotMetadata {
    let subtask = SubtaskMetadata { states: vec![state], ..SubtaskMetadata::default() };
    let operator = OperatorMetadata {
        id: "count".into(),
        key: Vec::new(),
        windows: String::new(),
        subtasks: vec![subtask],
        shared: Vec::new(),
    };
    SnapshotMetadata {
        checkpoint: id,
        kind: SnapshotKind::Checkpoint,
        job: "job".into(),
        max_parallelism: MaxParallelism::DEFAULT,
        triggered: 0,
        completed: 0,
        operators: vec![operator],
        program: None,
    }
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
        let found = store.latest().await.expect("readable").expect("a run");
        assert!(found.snapshot.is_none(), "it begins at the beginning");
        checkpoint(&first, 3).await;
        checkpoint(&first, 4).await;
        let Latest { run, snapshot, .. } = store.latest().await.expect("readable").expect("a run");
        let found = snapshot.expect("a checkpoint");
        assert_eq!((found.metadata.checkpoint, run.next_id().await.expect("readable")), (4, 5));
        let state = &found.metadata.operators[0].subtasks[0].states[0];
        assert_eq!(found.read(state).await.expect("whole"), part());
        let named = JobStore::open(text(found.name().as_ref())).await.expect("the name is its folder");
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
        assert!(store.latest().await.expect("readable").expect("a run").snapshot.is_none());
        let origin = first.load(1).await.expect("whole").name();
        store.begin_run(Some(&origin)).await.expect("stored");
        let found = store.latest().await.expect("readable").expect("a run");
        assert_eq!(found.snapshot.expect("its origin").name(), origin);
    });
}

/// Stores a checkpoint of one state. `whole` groups are written in full, and changes of all others upon `base`.
async fn build_on(
    run: &RunStore,
    id: u64,
    base: Option<&SnapshotMetadata>,
    whole: &[u16],
) -> SnapshotMetadata {
    let chunk = |group: u16| match base.is_none() || whole.contains(&group) {
        true => StateChunk::whole(KeyGroup(group), vec![group as u8; 8]),
        false => StateChunk::changes(KeyGroup(group), vec![id as u8; 2]),
    };
    let part = StatePart::plain("count", StateForm::Value, (0..10).map(chunk).collect());
    let bytes = part.chunks.iter().flat_map(|c| c.bytes.clone()).collect();
    let location = run.checkpoint(id).put_state("subtask-0", bytes).await.expect("stored");
    let mut state = StateMetadata::of_part(&part, location, 0);
    if let Some(base) = base {
        let of_base = &base.operators[0].subtasks[0].states[0];
        let moved = |file: &str| RunStore::from_later(base.checkpoint, file);
        state = state.upon(of_base, moved).expect("the same columns");
    }
    metadata(id, state)
}

/// Every checkpoint builds on the one before it, one of ten is never complete, another is given up after a later one has
/// been begun. What is there in the end is what the three that are kept refer to.
#[test]
fn of_a_hundred_checkpoints_three_are_kept_with_what_they_refer_to() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let run = store(folder.path()).begin_run(None).await.expect("stored");
        let (mut base, mut turn): (Option<SnapshotMetadata>, u64) = (None, 0);
        for id in 1..=100 {
            let whole = [(turn % 10) as u16];
            let made = build_on(&run, id, base.as_ref(), &whole).await;
            if id % 10 == 5 {
                continue;
            }
            run.checkpoint(made.checkpoint).put_metadata(&made).await.expect("stored");
            // Another that builds on the same one is under way: what it needs is still there.
            let under_way = build_on(&run, id + 1000, base.as_ref(), &whole).await;
            run.retain(3, &base.iter().collect::<Vec<_>>()).await.expect("deleted");
            for file in under_way.files() {
                let path = folder.path().join(paths::join(&format!("job/run-00001/chk-{}", id + 1000), file));
                assert!(path.is_file(), "{} after {id}", path.display());
            }
            run.checkpoint(id + 1000).delete().await.expect("given up");
            (base, turn) = (Some(made), turn + 1);
        }
        run.retain(3, &[]).await.expect("deleted");
        let mut expected = vec!["run.origin".to_owned()];
        for id in [98, 99, 100] {
            let kept = run.load(id).await.expect("whole");
            let state = &kept.metadata.operators[0].subtasks[0].states[0];
            let read = kept.read(state).await.expect("whole").len();
            assert!((10 * 8..=2 * 10 * 8 + 20).contains(&read), "{read} bytes");
            expected.push(format!("chk-{id}/_metadata"));
            expected.extend(kept.metadata.files().iter().map(|f| paths::join(&format!("chk-{id}"), f)));
        }
        let root = folder.path().join("job/run-00001");
        let mut expected: Vec<String> =
            expected.iter().map(|path| root.join(path).display().to_string()).collect();
        expected.sort();
        expected.dedup();
        assert_eq!(files(folder.path()), expected);
        let named = run.load(99).await.expect("whole").name();
        let opened = JobStore::open(text(named.as_ref())).await.expect("files beside it are found");
        let state = &opened.metadata.operators[0].subtasks[0].states[0];
        assert!(opened.read(state).await.is_ok() && run.has(&opened));
    });
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
        // What is as long as it was has to be what it was.
        let older = folder.path().join("job/run-00001/chk-1/count-0");
        fs::write(&older, b"oneseveN").expect("writable");
        let error = store.latest().await.expect_err("both").in_full();
        assert!(!error.contains("chk-1"), "{error}");
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
        let error = run
            .checkpoint(metadata.checkpoint)
            .put_metadata(&metadata)
            .await
            .expect_err("it is there")
            .to_string();
        assert!(error.contains("chk-1/_metadata"), "{error}");
    });
}

#[test]
fn places_that_are_none_are_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    for (location, word) in
        [("gs://bucket/x", "`gs:`"), ("", "path of a folder"), ("file:", "path of a folder")]
    {
        let error = Storage::open(location, folder.path()).expect_err(location).to_string();
        assert!(error.contains(word), "{error}");
    }
    for location in ["a", "file:b", "./c"] {
        Storage::open(location, folder.path()).expect(location);
    }
    assert!(["a", "b", "c"].iter().all(|name| folder.path().join(name).is_dir()));
}

#[test]
fn a_run_that_was_stopped_at_a_savepoint_goes_on_from_there_in_another() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let store = store(folder.path());
        let first = store.begin_run(None).await.expect("stored");
        checkpoint(&first, 1).await;
        let metadata = first.load(1).await.expect("whole").metadata;
        let savepoint = first.begin_savepoint().await.expect("readable");
        assert!(savepoint.name().ends_with("job/savepoint-00001"), "{}", savepoint.name());
        let metadata = SnapshotMetadata { checkpoint: 2, operators: Vec::new(), ..metadata };
        savepoint.put_metadata(&metadata).await.expect("stored");
        first.end_at(&savepoint.name()).await.expect("stored");
        let latest = store.latest().await.expect("readable").expect("a run");
        assert!(latest.ended);
        assert_eq!(latest.snapshot.expect("the savepoint").name(), savepoint.name());
        let next = first.begin_savepoint().await.expect("readable");
        assert!(next.name().ends_with("savepoint-00002"), "{}", next.name());
        savepoint.delete().await.expect("deleted");
        let error = store.latest().await.expect_err("gone").in_full();
        assert!(error.contains("savepoint-00001") && error.contains("no snapshot"), "{error}");
    });
}

#[test]
fn a_folder_that_is_named_for_a_savepoint_has_to_be_empty() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let named = SnapshotFolder::named(text(&folder.path().join("new"))).await.expect("it is made");
        assert!(!named.is_complete().await.expect("readable"));
        fs::write(folder.path().join("mine.txt"), "precious").expect("writable");
        let error = SnapshotFolder::named(text(folder.path())).await.expect_err("not empty").to_string();
        assert!(error.contains("`new`") || error.contains("`mine.txt`"), "{error}");
        fs::remove_dir(folder.path().join("new")).expect("nothing in it");
        let error = SnapshotFolder::named(text(folder.path())).await.expect_err("not empty").to_string();
        assert!(error.contains("`mine.txt`") && error.contains("empty folder"), "{error}");
    });
}

#[test]
fn a_savepoint_is_in_no_run_as_it_would_be_deleted_there() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let run = store(folder.path()).begin_run(None).await.expect("stored");
        for inside in ["chk-30", "mine", ""] {
            let place = format!("{}/{inside}", run.name());
            let error = SnapshotFolder::named(&place).await.expect_err(inside).to_string();
            assert!(error.contains("job/run-00001") && error.contains("name another one"), "{error}");
        }
        // It is called like one, and is none.
        let alike = folder.path().join("other/run-00001/mine");
        SnapshotFolder::named(text(&alike)).await.expect("nothing is deleted there");
    });
}

#[test]
fn a_run_says_how_its_process_is_spoken_to() {
    let folder = TempDir::new().expect("a temporary folder");
    run(async {
        let run = store(folder.path()).begin_run(None).await.expect("stored");
        assert_eq!(run.control().await.expect("readable"), None);
        run.set_control(Some("here")).await.expect("stored");
        assert_eq!(run.control().await.expect("readable").as_deref(), Some("here"));
        run.set_control(None).await.expect("deleted");
        run.set_control(None).await.expect("it is gone already");
        assert_eq!(run.control().await.expect("readable"), None);
    });
}

#[test]
fn a_run_is_held_by_one_at_a_time() {
    let folder = TempDir::new().expect("a folder");
    let held = run(store(folder.path()).begin_run(None)).expect("a run");
    let take = || run(held.lock()).expect("a file");
    let lock = take().expect("nobody has it");
    assert!(take().is_none(), "somebody has it");
    drop(lock);
    assert!(take().is_some(), "nobody has it any more");
}

#[test]
fn a_run_that_was_stopped_is_found_where_it_has_been_moved_to() {
    let folder = TempDir::new().expect("a folder");
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    run(async {
        let held = store(&before).begin_run(None).await.expect("a run");
        let savepoint = held.begin_savepoint().await.expect("a place");
        let empty = StatePart::plain("count", StateForm::Value, Vec::new());
        let location = savepoint.put_state("count-0", Vec::new()).await.expect("stored");
        let state = StateMetadata::of_part(&empty, location, 0);
        savepoint.put_metadata(&metadata(3, state)).await.expect("stored");
        held.end_at(&savepoint.name()).await.expect("noted");
        fs::rename(&before, &after).expect("moved");
        let latest = store(&after).latest().await.expect("readable").expect("a run");
        assert_eq!(latest.snapshot.map(|found| found.metadata.checkpoint), Some(3));
    });
}

#[test]
fn numbers_behind_which_there_is_none_are_nobodys() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir_all(folder.path().join(format!("job/run-{}", u64::MAX))).expect("a folder");
    let begun = run(store(folder.path()).begin_run(None)).expect("a run");
    assert!(begun.name().ends_with("run-00001"), "{}", begun.name());
}
