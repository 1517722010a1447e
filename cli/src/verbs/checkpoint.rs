//! `millstream checkpoint list`: the snapshots of the jobs that have them in a folder.

use comfy_table::{CellAlignment, Table, presets};
use millstream_snapshot::{Location, SnapshotKind, SnapshotMetadata, StateMetadata};
use millstream_storage::{JobStore, RunStore, Storage, StorageError, StoredSnapshot};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

use super::snapshots::{block_on, failed};
use crate::{
    args,
    exit::{Exit, Failure},
    printer::Printer,
    summary::{count, time},
};

/// Lists what there is, runs and then savepoints, in ascending order.
pub(crate) fn list(args: &args::CheckpointList, printer: &Printer) -> Result<Exit, Failure> {
    block_on(async {
        let storage = Storage::open_existing(&args.dir).map_err(failed)?;
        let mut lines = Vec::new();
        for job in JobStore::jobs(&storage).await.map_err(failed)? {
            if args.job.as_ref().is_none_or(|wanted| *wanted == job) {
                of_job(&job, &storage, &mut lines).await.map_err(failed)?;
            }
        }
        if lines.is_empty() {
            printer.note(&format!("there is no checkpoint in {}", args.dir));
        }
        printer.result(&lines, || table(&lines));
        Ok(Exit::Success)
    })
}

/// A snapshot in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line {
    job: String,
    /// None if it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    kind: &'static str,
    path: String,
    #[serde(flatten)]
    figures: Option<Figures>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What the metadata says of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Figures {
    /// When it was triggered, milliseconds since the epoch.
    triggered: i64,
    /// From its trigger until all had acknowledged it.
    duration_ms: i64,
    /// The longest that a subtask waited for its barrier to come through all channels.
    alignment_ms: f64,
    /// The longest that a subtask stood still.
    pause_ms: f64,
    /// Bytes of state that it refers to.
    bytes: u64,
    /// Bytes of those that were written for it.
    changed_bytes: u64,
    /// Whether its barrier has overtaken rows in channels.
    unaligned: bool,
    /// Bytes of those.
    in_flight_bytes: u64,
    /// Bytes of state by operator.
    operators: BTreeMap<String, u64>,
}

impl Figures {
    fn of(metadata: &SnapshotMetadata) -> Self {
        let operators = metadata.operators.iter();
        Self {
            triggered: metadata.triggered,
            duration_ms: metadata.completed - metadata.triggered,
            alignment_ms: metadata.alignment_micros() as f64 / 1000.0,
            pause_ms: metadata.pause_micros() as f64 / 1000.0,
            bytes: metadata.state_bytes(),
            changed_bytes: metadata.states().map(own_bytes).sum(),
            unaligned: metadata.is_unaligned(),
            in_flight_bytes: metadata.in_flight_bytes(),
            operators: operators
                .map(|o| (o.id.clone(), o.states().map(StateMetadata::bytes).sum()))
                .collect(),
        }
    }
}

/// How many bytes of a state lie in the snapshot's own folder.
fn own_bytes(state: &StateMetadata) -> u64 {
    let is_own = |place: &Location| match place {
        Location::File(path) => !path.contains('/'),
        Location::Inline(_) => true,
    };
    let own = state.chunks.iter().filter(|chunk| is_own(&state.places[usize::from(chunk.place)]));
    own.map(|chunk| chunk.length).sum()
}

async fn of_job(job: &str, storage: &Storage, lines: &mut Vec<Line>) -> Result<(), StorageError> {
    let store = JobStore::new(storage.clone(), job);
    for run in store.all_runs().await? {
        let mut of_run = Vec::new();
        let mut referred = BTreeSet::new();
        for checkpoint in run.checkpoints().await? {
            let path = run.checkpoint(checkpoint.id).name();
            let found = match checkpoint.complete {
                true => Some(run.load(checkpoint.id).await),
                false => None,
            };
            if let Some(Ok(found)) = &found {
                referred.extend(found.metadata.files().into_iter().filter_map(RunStore::of_earlier));
            }
            of_run.push(Line { id: Some(checkpoint.id), ..line(job, "checkpoint", path, found) });
        }
        for line in &mut of_run {
            if line.figures.is_none() && line.id.is_some_and(|id| referred.contains(&id)) {
                line.problem = Some("superseded; later ones refer to files in it".to_owned());
            }
        }
        lines.append(&mut of_run);
    }
    for savepoint in store.savepoints().await? {
        let found = match savepoint.is_complete().await? {
            true => Some(savepoint.load().await),
            false => None,
        };
        lines.push(line(job, "savepoint", savepoint.name(), found));
    }
    Ok(())
}

fn line(
    job: &str,
    kind: &'static str,
    path: String,
    found: Option<Result<StoredSnapshot, StorageError>>,
) -> Line {
    let job = job.to_owned();
    let (metadata, problem) = match found {
        Some(Ok(found)) => (Some(found.metadata), None),
        Some(Err(error)) => (None, Some(error.in_full())),
        None => (None, Some("incomplete: it is being written, or was given up".to_owned())),
    };
    let kind = match metadata.as_ref().map(|metadata| metadata.kind) {
        Some(SnapshotKind::Savepoint) => "savepoint",
        Some(SnapshotKind::Checkpoint) => "checkpoint",
        None => kind,
    };
    let id = metadata.as_ref().map(|metadata| metadata.checkpoint);
    Line { job, id, kind, path, figures: metadata.as_ref().map(Figures::of), problem }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "job",
        "id",
        "kind",
        "time",
        "bytes",
        "changed",
        "in flight",
        "took ms",
        "aligned ms",
        "paused ms",
        "state of operators",
        "path",
    ]);
    for line in lines {
        let id = line.id.map(|id| id.to_string()).unwrap_or_default();
        let start = [line.job.clone(), id, line.kind.to_owned()];
        let middle = match (&line.figures, &line.problem) {
            (Some(f), _) => [
                time(f.triggered),
                count(f.bytes),
                count(f.changed_bytes),
                if f.unaligned { count(f.in_flight_bytes) } else { "aligned".to_owned() },
                f.duration_ms.to_string(),
                format!("{:.1}", f.alignment_ms),
                format!("{:.1}", f.pause_ms),
                operators(&f.operators),
            ],
            (None, problem) => {
                let mut cells = [const { String::new() }; 8];
                cells[7] = problem.clone().unwrap_or_default();
                cells
            }
        };
        table.add_row(start.into_iter().chain(middle).chain([line.path.clone()]));
    }
    for column in table.column_iter_mut().skip(4).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// The operators that have state, the largest first.
fn operators(bytes: &BTreeMap<String, u64>) -> String {
    let mut operators: Vec<_> = bytes.iter().filter(|(_, bytes)| **bytes > 0).collect();
    operators.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let text = operators.into_iter().map(|(id, bytes)| format!("{id} {}", count(*bytes)));
    text.collect::<Vec<_>>().join("; ")
}
