//! Keyed state that does not fit into memory: its checkpoints are files of a store, its savepoints are what those of any
//! job are, and it goes from one backend to the other.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use millstream_snapshot::SnapshotMetadata;
use serde_json::Value;

use crate::{
    subject::{Subject, assert_same},
    support::{Output, finish},
};

pub(crate) const ON_DISK: &str = "state = { backend = \"rocksdb\", memory = \"16MiB\", dir = \"state\" }";
pub(crate) const IN_MEMORY: &str = "state = { backend = \"memory\" }";

/// Counts by key until a timer a key, with far more keys than the cache of a subtask has room for.
fn job(records: u32, settings: &str) -> String {
    r#"
        [job]
        name = "counts"
        parallelism = 2
        SETTINGS
        [module.bench]
        path = "${MILLSTREAM_GUESTS}/bench.wasm"
        [source.records]
        connector = "generator"
        kind = "bench-process"
        keys = RECORDS
        records = RECORDS
        rate = 300000
        events-per-second = 100000
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.counts]
        function = "bench.process"
        input = "records"
        key = ["key"]
        [sink.out]
        connector = "file"
        input = "counts"
        path = "${MILLSTREAM_OUT}/counts"
        format = "jsonl"
    "#
    .replace("RECORDS", &records.to_string())
    .replace("SETTINGS", settings)
}

const RECORDS: u32 = 400_000;
const OFTEN: &str = "checkpoint = { interval = \"100ms\" }";

/// The job, with checkpoints as it goes.
pub(crate) fn subject() -> Subject {
    Subject::new(&job(RECORDS, &format!("{OFTEN}\n{ON_DISK}")), "counts")
}

/// The same with barriers that overtake.
pub(crate) fn overtaking() -> Subject {
    let often = "checkpoint = { interval = \"100ms\", unaligned = true }";
    Subject::new(&job(RECORDS, &format!("{often}\n{ON_DISK}")), "counts")
}

/// The same job with its state elsewhere.
fn keep(subject: &Subject, records: u32, state: &str) {
    fs::write(subject.path("job.toml"), job(records, &format!("{OFTEN}\n{state}"))).expect("writable");
}

fn run_folder(subject: &Subject) -> PathBuf {
    subject.path("checkpoints/counts/run-00001")
}

/// The run that any job has begun.
fn newest_run(subject: &Subject) -> PathBuf {
    let jobs = fs::read_dir(subject.path("checkpoints")).into_iter().flatten();
    jobs.filter_map(|job| Some(job.ok()?.path().join("run-00001")))
        .find(|run| run.exists())
        .unwrap_or_default()
}

/// The complete checkpoints, ascending.
pub(crate) fn complete(run: &Path) -> Vec<(PathBuf, SnapshotMetadata)> {
    let folders = fs::read_dir(run).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let read = |folder: PathBuf| {
        let bytes = fs::read(folder.join("_metadata")).ok()?;
        Some((folder, SnapshotMetadata::decode(&bytes).expect("it is put as a whole")))
    };
    let mut found: Vec<_> = folders.filter_map(read).collect();
    found.sort_by_key(|(_, metadata)| metadata.checkpoint);
    found
}

/// The files that a checkpoint refers to.
fn files_of((folder, metadata): &(PathBuf, SnapshotMetadata)) -> BTreeSet<PathBuf> {
    let whole = |file: &str| match file.strip_prefix("../") {
        Some(of_earlier) => folder.parent().expect("a run").join(of_earlier),
        None => folder.join(file),
    };
    metadata.files().into_iter().map(whole).collect()
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

/// Runs until the newest checkpoint has files of a store, its own and those of another one, and kills it then.
fn until_on_disk(subject: &Subject) -> (PathBuf, SnapshotMetadata) {
    let builds = |found: &(PathBuf, SnapshotMetadata)| {
        let files = files_of(found);
        let tables = |own: bool| files.iter().any(|f| is_table(f) && f.starts_with(&found.0) == own);
        tables(true) && tables(false)
    };
    until(subject, |complete| complete.len() == 3 && complete.last().is_some_and(builds));
    complete(&run_folder(subject)).pop().filter(builds).expect("the next one as well")
}

/// Runs until what is complete is as wanted, and kills it then. Says how much memory it has had at most.
pub(crate) fn until(subject: &Subject, wanted: impl Fn(&[(PathBuf, SnapshotMetadata)]) -> bool) -> u64 {
    let mut command = subject.command();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command");
    let (since, mut peak) = (Instant::now(), 0);
    while !wanted(&complete(&newest_run(subject))) {
        if let Some(end) = child.try_wait().expect("a child") {
            // Its last checkpoint may have been the wanted one.
            let found = complete(&newest_run(subject));
            let (told, found_so) = (child.wait_with_output().expect("a child").stderr, described(&found));
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(wanted(&found), "it came to its end, {end}, with {found_so}:\n{told}");
            return peak;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "it takes too long");
        peak = peak_memory(child.id()).unwrap_or(peak);
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("a child can be killed");
    child.wait().expect("a child");
    peak
}

/// What checkpoints have, for messages.
fn described(checkpoints: &[(PathBuf, SnapshotMetadata)]) -> String {
    let of = |found: &(PathBuf, SnapshotMetadata)| {
        let tables: Vec<_> = files_of(found).into_iter().filter(|file| is_table(file)).collect();
        let own = tables.iter().filter(|table| table.starts_with(&found.0)).count();
        format!("{}: {own} new tables, {} others", found.1.checkpoint, tables.len() - own)
    };
    checkpoints.iter().map(of).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_checkpoint_has_the_new_files_of_a_store_and_refers_to_the_others() {
    let subject = subject();
    let (folder, _) = until_on_disk(&subject);
    let mut list = Command::new(env!("CARGO_BIN_EXE_millstream"));
    list.args(["checkpoint", "list", "--json"]).arg(subject.path("checkpoints"));
    let listed = finish(&mut list).success().json();
    let of_newest = |line: &&Value| line["path"].as_str() == folder.to_str();
    let newest = listed.as_array().expect("a list").iter().find(of_newest).expect("the newest one").clone();
    let bytes = |name: &str| newest[name].as_u64().expect("a number");
    assert!(bytes("changed-bytes") > 0 && bytes("changed-bytes") < bytes("bytes"), "{newest}");
    let show = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        finish(command.args(["state", "show"]).arg(&folder).args(arguments)).success()
    };
    let table = show(&["counts", "count", "--limit", "3"]).stdout;
    assert!(table.contains("rows, in the store") && table.contains("... and "), "{table}");
    let rows = show(&["counts", "event", "--format", "jsonl"]).stdout;
    let first: Value = serde_json::from_str(rows.lines().next().expect("timers")).expect("JSON");
    assert!(first["key"].is_i64() && first["time"].is_string(), "{first}");
    assert!(show(&["counts"]).stdout.contains("store (store): "), "its bytes are told");
    subject.run();
    assert_same(&subject.rows(), &subject.undisturbed(), "after it was looked at");
}

#[test]
fn checkpoints_on_disk_go_on_in_memory_and_back() {
    // So that it does not come to its end meanwhile.
    let records = 4 * RECORDS;
    let subject = Subject::new(&job(records, &format!("{OFTEN}\n{ON_DISK}")), "counts");
    until(&subject, |complete| {
        complete.last().is_some_and(|newest| files_of(newest).iter().any(|f| is_table(f)))
    });
    let (_, last) = complete(&run_folder(&subject)).pop().expect("a checkpoint");
    keep(&subject, records, IN_MEMORY);
    until(&subject, |complete| complete.last().is_some_and(|(_, it)| it.checkpoint > last.checkpoint));
    let (_, newest) = complete(&run_folder(&subject)).pop().expect("a checkpoint");
    assert!(!newest.files().iter().any(|file| file.ends_with(".sst")), "it is in chunks");
    keep(&subject, records, ON_DISK);
    subject.run_and_kill_at(3, Duration::from_millis(500));
    keep(&subject, records, IN_MEMORY);
    subject.run_at(1);
    assert_same(&subject.rows(), &subject.undisturbed(), "from disk to memory, to disk, to memory");
}

#[test]
fn savepoints_of_state_on_disk_are_restored_by_both_backends_at_any_parallelism() {
    for (state, parallelism) in [(ON_DISK, "3"), (IN_MEMORY, "1")] {
        let subject = subject();
        let file = subject.path("job.toml");
        let file = file.to_str().expect("paths of tests are text");
        let running = subject.start(&[file]);
        thread::sleep(Duration::from_millis(900));
        let saved = subject.path("saved");
        let saved = saved.to_str().expect("paths of tests are text");
        finish(&mut subject.about(&["savepoint", "--json", "--to", saved])).success();
        running.kill();
        let bytes = fs::read(Path::new(saved).join("_metadata")).expect("a savepoint");
        let metadata = SnapshotMetadata::decode(&bytes).expect("metadata that is whole");
        assert!(!metadata.states().any(|state| state.name == "store"), "it is for anybody");
        assert!(metadata.state_bytes() > 1 << 20, "{}", metadata.state_bytes());
        keep(&subject, RECORDS, state);
        subject.start(&[file, "--parallelism", parallelism, "--from", saved]).end().success();
        assert_same(&subject.rows(), &subject.undisturbed(), state);
    }
}

#[test]
fn a_damaged_file_of_a_store_is_named_and_the_checkpoint_before_is_offered() {
    let subject = subject();
    let newest = until_on_disk(&subject);
    let older = complete(&run_folder(&subject)).into_iter().rev().nth(1).expect("three are kept");
    let of_older = files_of(&older);
    let table =
        files_of(&newest).into_iter().find(|f| is_table(f) && !of_older.contains(f)).expect("a new one");
    let name = table.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let good = fs::read(&table).expect("a file");
    let refused = |problem: &str| {
        let output = finish(&mut subject.command());
        assert_eq!(output.code, Some(4), "{}", output.stderr);
        let text = words_of(&output);
        let offered = older.0.to_str().expect("paths of tests are text");
        for word in [&name, problem, offered] {
            assert!(text.contains(&word.replace(' ', "")), "`{word}` is missing in\n{}", output.stderr);
        }
    };
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    fs::write(&table, &damaged).expect("writable");
    refused("is damaged");
    fs::write(&table, &good[..good.len() / 2]).expect("writable");
    refused("cut short");
    fs::remove_file(&table).expect("it is there");
    refused("is gone");
    fs::write(&table, &good).expect("writable");
    subject.run();
    assert_same(&subject.rows(), &subject.undisturbed(), "once it is whole again");
}

/// What is printed, without the places where lines are broken.
fn words_of(output: &Output) -> String {
    output.stderr.chars().filter(|c| !c.is_whitespace() && *c != '│').collect()
}

#[test]
fn a_run_leaves_the_files_that_its_last_checkpoints_refer_to() {
    let often = "checkpoint = { interval = \"5ms\", retain = 3 }";
    let subject = Subject::new(&job(RECORDS, &format!("{often}\n{ON_DISK}")), "counts");
    subject.run_and_kill(Duration::from_millis(1500));
    subject.run();
    let kept = complete(&run_folder(&subject));
    let taken = kept.last().map_or(0, |(_, metadata)| metadata.checkpoint);
    assert!(taken > 6 && kept.len() <= 3, "{taken} taken, {} kept", kept.len());
    let mut expected: BTreeSet<PathBuf> = kept.iter().flat_map(files_of).collect();
    assert!(expected.iter().any(|file| is_table(file)), "{expected:?}");
    expected.extend(kept.iter().map(|(folder, _)| folder.join("_metadata")));
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).expect("a folder");
        read.map(|entry| entry.expect("an entry").path()).collect()
    };
    let folders = entries(&run_folder(&subject)).into_iter().filter(|path| path.is_dir());
    let found: BTreeSet<PathBuf> = folders.flat_map(|folder| entries(&folder)).collect();
    assert_eq!(found, expected);
}

/// The most memory that a process has had, in bytes.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// What a job takes at most, which is killed when its newest checkpoint has so many bytes of state.
pub(crate) fn peak_until(subject: &Subject, bytes: u64) -> u64 {
    until(subject, |complete| complete.last().is_some_and(|(_, newest)| newest.state_bytes() >= bytes))
}

/// 16 MiB of memory, and new keys until a checkpoint has eight times as much state.
#[test]
fn checkpoints_of_state_on_disk_are_never_in_memory_as_a_whole() {
    let grows = |checkpoint: &str| {
        let text = job(20_000_000, &format!("{checkpoint}\n{ON_DISK}"));
        // No timer is due before the end.
        let text = text.replace("rate = 300000", "rate = 1000000").replace("100000\n", "1000000000\n");
        Subject::new(&text, "counts")
    };
    let checkpoint = "checkpoint = { interval = \"1s\" }";
    let small = peak_until(&grows(checkpoint), 8 << 20);
    let large = peak_until(&grows(checkpoint), 128 << 20);
    // Compressed in files, so as chunks it would be more than twice as much.
    assert!(large < small + (112 << 20), "{large} bytes of memory, {small} with less state");
}
