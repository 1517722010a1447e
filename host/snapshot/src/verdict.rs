//! Whether a job can go on from a snapshot, state by state, before anything runs.
//!
//! | verdict | when | what happens at the restore |
//! |---|---|---|
//! | `same` | the columns are the same | the bytes are taken as they are |
//! | `widened` | columns are wider, may be null now, have been added (nullable), removed or moved | the host rewrites the rows |
//! | `migrated` | the version is later, and the module takes this one over | the module rewrites the values |
//! | `new` | the snapshot does not have it | it starts empty |
//! | `missing` | the job does not have it | it is dropped, if the user allows that |
//! | `incompatible` | anything else | nothing runs |
//!
//! What operators keep for themselves, as their clocks, is no user's business: it is taken by an operator that knows it.

use std::{collections::BTreeSet, fmt};

use millstream_types::{Column, Dealing, StateForm};

use crate::{OperatorMetadata, SnapshotMetadata, StateMetadata, evolution::evolve};

/// What an operator of a job keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedOperator {
    /// Under which its state is kept.
    pub id: String,
    /// The columns by which its keyed state is keyed.
    pub key: Vec<Column>,
    /// How it cuts time into windows; empty if it does not.
    pub windows: String,
    /// Its states.
    pub states: Vec<WantedState>,
}

/// A state that an operator keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedState {
    /// Its name.
    pub name: String,
    /// What it is.
    pub form: StateForm,
    /// Version of its columns.
    pub version: u32,
    /// The columns of its rows; none where they are the operator's own business.
    pub columns: Vec<Column>,
    /// The versions that the module takes over.
    pub migrates_from: Vec<u32>,
}

/// What becomes of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken as it is.
    Same,
    /// The host takes it over: what it changes.
    Widened(String),
    /// The module takes it over.
    Migrated {
        /// The version that it makes.
        to: u32,
    },
    /// The snapshot does not have it.
    New,
    /// The job does not have it.
    Missing,
    /// It cannot be taken over: why, and what to do.
    Incompatible(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Same => f.write_str("same"),
            Verdict::Widened(changes) => write!(f, "widened: {changes}"),
            Verdict::Migrated { to } => write!(f, "migrated by v{to}"),
            Verdict::New => f.write_str("new: starts empty"),
            Verdict::Missing => f.write_str("missing: allow with --allow-dropped-state"),
            Verdict::Incompatible(why) => write!(f, "incompatible: {why}"),
        }
    }
}

/// The verdict on one state of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVerdict {
    /// The operator.
    pub operator: String,
    /// The state.
    pub state: String,
    /// What it is.
    pub form: StateForm,
    /// What the snapshot has; none if it does not have it.
    pub found: Option<String>,
    /// What the job has; none if it does not have it.
    pub wanted: Option<String>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// The verdicts on all states of a snapshot and a job, by operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// One a state.
    pub verdicts: Vec<StateVerdict>,
}

impl RestoreReport {
    /// Compares what a snapshot has with what a job wants.
    pub fn new(snapshot: &SnapshotMetadata, wanted: &[WantedOperator]) -> Self {
        let mut verdicts = Vec::new();
        for found in &snapshot.operators {
            let wanted = wanted.iter().find(|operator| operator.id == found.id);
            found_verdicts(found, wanted, &mut verdicts);
        }
        for wanted in wanted {
            new_verdicts(snapshot.operator(&wanted.id), wanted, &mut verdicts);
        }
        Self { verdicts }
    }

    /// Whether the job must not go on from the snapshot.
    pub fn is_refused(&self, allow_dropped: bool) -> bool {
        self.verdicts.iter().any(|v| match v.verdict {
            Verdict::Incompatible(_) => true,
            Verdict::Missing => !allow_dropped,
            _ => false,
        })
    }

    /// Whether there is nothing to tell: all that there is is taken as it is.
    pub fn is_plain(&self) -> bool {
        self.verdicts.iter().all(|v| v.verdict == Verdict::Same)
    }
}

/// What becomes of one state of one subtask.
pub fn verdict_on(found: &StateMetadata, operator: &OperatorMetadata, wanted: &WantedOperator) -> Verdict {
    let same = |w: &&WantedState| w.name == found.name && w.form == found.form;
    let Some(state) = wanted.states.iter().find(same) else { return Verdict::Missing };
    if found.form.dealing() == Dealing::ByKeyGroup
        && let Some(problem) = other_key(&operator.key, &wanted.key)
    {
        return Verdict::Incompatible(problem);
    }
    let cut = matches!(found.form, StateForm::Accumulators | StateForm::Contents);
    if cut && operator.windows != wanted.windows {
        return Verdict::Incompatible(format!(
            "its windows are {}, the job's {}: what has been gathered fits no other",
            operator.windows, wanted.windows
        ));
    }
    if found.version > state.version {
        let (found, known) = (found.version, state.version);
        return Verdict::Incompatible(format!(
            "it was written in version {found}, and the module has version {known}: use the later module"
        ));
    }
    if found.version < state.version && state.migrates_from.contains(&found.version) {
        return Verdict::Migrated { to: state.version };
    }
    match evolve(&found.columns, &state.columns) {
        Ok(changes) if changes.is_empty() => Verdict::Same,
        Ok(changes) => Verdict::Widened(changes.join(", ")),
        Err(problem) => Verdict::Incompatible(problem),
    }
}

/// Why keys would not be found again, if they would not.
fn other_key(found: &[Column], wanted: &[Column]) -> Option<String> {
    let types =
        |columns: &[Column]| columns.iter().map(|c| c.data_type.name()).collect::<Vec<_>>().join(", ");
    let (found, wanted) = (types(found), types(wanted));
    (found != wanted).then(|| {
        format!("it is keyed by ({found}) and the job keys by ({wanted}): its keys would not be found again")
    })
}

/// Verdicts on what a snapshot has of an operator, each state once whatever number of subtasks has it.
fn found_verdicts(
    found: &OperatorMetadata,
    wanted: Option<&WantedOperator>,
    verdicts: &mut Vec<StateVerdict>,
) {
    let nobody = WantedOperator {
        id: found.id.clone(),
        key: Vec::new(),
        windows: found.windows.clone(),
        states: Vec::new(),
    };
    let wanted = wanted.unwrap_or(&nobody);
    let mut seen = BTreeSet::new();
    let in_store = found.states().any(|state| state.form == StateForm::Store);
    for state in found.states().filter(|state| is_users(state.form)) {
        let text = describe(state.form, state.version, &state.columns);
        // What has nothing in it can be dropped without a word, but what a store has has no chunks of its own.
        if (state.chunks.is_empty() && !in_store)
            || !seen.insert((state.name.as_str(), state.form, text.clone()))
        {
            continue;
        }
        let in_job = wanted.states.iter().find(|w| w.name == state.name && w.form == state.form);
        verdicts.push(StateVerdict {
            operator: found.id.clone(),
            state: state.name.clone(),
            form: state.form,
            found: Some(text),
            wanted: in_job.map(|w| describe(w.form, w.version, &w.columns)),
            verdict: verdict_on(state, found, wanted),
        });
    }
}

/// Verdicts on declared states that the snapshot does not have.
fn new_verdicts(found: Option<&OperatorMetadata>, wanted: &WantedOperator, verdicts: &mut Vec<StateVerdict>) {
    let there = |w: &WantedState| {
        found.is_some_and(|o| o.states().any(|state| state.name == w.name && state.form == w.form))
    };
    let declared = |w: &&WantedState| !w.columns.is_empty() && w.form != StateForm::Overtaken;
    for state in wanted.states.iter().filter(|w| declared(w) && !there(w)) {
        verdicts.push(StateVerdict {
            operator: wanted.id.clone(),
            state: state.name.clone(),
            form: state.form,
            found: None,
            wanted: Some(describe(state.form, state.version, &state.columns)),
            verdict: Verdict::New,
        });
    }
}

/// Whether a user would miss state of this form.
fn is_users(form: StateForm) -> bool {
    !matches!(form, StateForm::Subtask | StateForm::Store)
}

fn describe(form: StateForm, version: u32, columns: &[Column]) -> String {
    let column = |c: &Column| format!("{} {}{}", c.name, c.data_type, if c.nullable { "?" } else { "" });
    let columns = columns.iter().map(column).collect::<Vec<_>>().join(", ");
    match columns.is_empty() {
        true => form.name().to_owned(),
        false => format!("{} v{version} ({columns})", form.name()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use millstream_types::{DataType, MaxParallelism, StateChunk, StatePart};

    use super::*;
    use crate::{Location, SnapshotKind, SubtaskMetadata};

    fn column(name: &str, data_type: DataType) -> Column {
        Column { name: name.into(), data_type, nullable: false }
    }

    fn state(name: &str, form: StateForm, columns: Vec<Column>) -> StateMetadata {
        let chunk = StateChunk::item(vec![1]);
        let part = StatePart { version: 2, columns, ..StatePart::plain(name, form, vec![chunk]) };
        StateMetadata::of_part(&part, Location::Inline(vec![1]), 0)
    }

    fn wanted(name: &str, form: StateForm, version: u32, columns: Vec<Column>) -> WantedState {
        WantedState { name: name.into(), form, version, columns, migrates_from: vec![2] }
    }

    fn snapshot() -> SnapshotMetadata {
        let n = || vec![column("n", DataType::Int32)];
        let states = vec![
            state("kept", StateForm::Value, n()),
            state("wide", StateForm::List, n()),
            state("text", StateForm::Value, vec![column("n", DataType::Utf8)]),
            state("later", StateForm::Map, n()),
            state("migrated", StateForm::Value, n()),
            state("gone", StateForm::Items, n()),
            state("kind", StateForm::Value, n()),
            state("clock", StateForm::Subtask, Vec::new()),
            StateMetadata { chunks: Vec::new(), ..state("empty", StateForm::Value, n()) },
        ];
        let subtask = SubtaskMetadata { states, ..SubtaskMetadata::default() };
        let operator = |id: &str, subtasks| OperatorMetadata {
            id: id.into(),
            key: vec![column("k", DataType::Utf8)],
            windows: "tumbling of 1s".into(),
            subtasks,
            shared: Vec::new(),
        };
        SnapshotMetadata {
            checkpoint: 1,
            kind: SnapshotKind::Savepoint,
            job: "job".into(),
            max_parallelism: MaxParallelism::DEFAULT,
            triggered: 0,
            completed: 0,
            operators: vec![
                operator("op", vec![subtask.clone(), subtask]),
                operator(
                    "removed",
                    vec![SubtaskMetadata {
                        states: vec![state("s", StateForm::Value, n())],
                        ..SubtaskMetadata::default()
                    }],
                ),
            ],
            program: None,
        }
    }

    fn job(key: DataType) -> Vec<WantedOperator> {
        let wide = || vec![column("n", DataType::Int64)];
        let n = || vec![column("n", DataType::Int32)];
        let states = vec![
            wanted("kept", StateForm::Value, 2, n()),
            wanted("wide", StateForm::List, 2, wide()),
            wanted("text", StateForm::Value, 2, n()),
            wanted("later", StateForm::Map, 1, n()),
            wanted("migrated", StateForm::Value, 3, vec![column("other", DataType::Utf8)]),
            wanted("kind", StateForm::List, 2, n()),
            wanted("fresh", StateForm::Value, 1, n()),
        ];
        vec![WantedOperator {
            id: "op".into(),
            key: vec![column("renamed", key)],
            windows: "tumbling of 1s".into(),
            states,
        }]
    }

    fn check(report: &RestoreReport, expected: Expect) {
        let line = |v: &StateVerdict| format!("{}.{}: {}\n", v.operator, v.state, v.verdict);
        expected.assert_eq(&report.verdicts.iter().map(line).collect::<String>());
    }

    #[test]
    fn what_windows_have_gathered_fits_no_others() {
        let states = vec![state("windows", StateForm::Accumulators, Vec::new())];
        let operator = |windows: &str| OperatorMetadata {
            id: "op".into(),
            key: Vec::new(),
            windows: windows.into(),
            subtasks: vec![SubtaskMetadata { states: states.clone(), ..SubtaskMetadata::default() }],
            shared: Vec::new(),
        };
        let job = WantedOperator {
            id: "op".into(),
            key: Vec::new(),
            windows: "tumbling of 1s".into(),
            states: vec![wanted("windows", StateForm::Accumulators, 2, Vec::new())],
        };
        let verdict = |windows| verdict_on(&states[0], &operator(windows), &job);
        assert_eq!(verdict("tumbling of 1s"), Verdict::Same);
        expect!["incompatible: its windows are tumbling of 2s, the job's tumbling of 1s: what has been gathered fits no other"]
            .assert_eq(&verdict("tumbling of 2s").to_string());
    }

    #[test]
    fn every_verdict() {
        let report = RestoreReport::new(&snapshot(), &job(DataType::Utf8));
        check(
            &report,
            expect![[r#"
                op.kept: same
                op.wide: widened: `n` from int32 to int64
                op.text: incompatible: `n` is utf8 and cannot become int32 by itself: give the module a migration
                op.later: incompatible: it was written in version 2, and the module has version 1: use the later module
                op.migrated: migrated by v3
                op.gone: missing: allow with --allow-dropped-state
                op.kind: missing: allow with --allow-dropped-state
                removed.s: missing: allow with --allow-dropped-state
                op.kind: new: starts empty
                op.fresh: new: starts empty
            "#]],
        );
        assert!(report.is_refused(true) && !report.is_plain());
        let wide = &report.verdicts[1];
        assert_eq!(wide.found.as_deref(), Some("list v2 (n int32)"));
        assert_eq!(wide.wanted.as_deref(), Some("list v2 (n int64)"));
    }

    #[test]
    fn another_key_is_found_out() {
        let report = RestoreReport::new(&snapshot(), &job(DataType::Int64));
        let text = report.verdicts[0].verdict.to_string();
        assert!(
            text.starts_with("incompatible: it is keyed by (utf8) and the job keys by (int64)"),
            "{text}"
        );
    }

    #[test]
    fn what_is_missing_is_dropped_only_if_that_is_allowed() {
        let snapshot = SnapshotMetadata { operators: snapshot().operators.split_off(1), ..snapshot() };
        let report = RestoreReport::new(&snapshot, &[]);
        assert!(report.is_refused(false) && !report.is_refused(true));
        assert!(!RestoreReport::default().is_refused(false) && RestoreReport::default().is_plain());
    }
}
