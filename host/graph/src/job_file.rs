//! The job file: one table a node, each of which names its inputs. This text is its reference.
//!
//! A job file is TOML, or JSON with the same tables as objects. In every string `${NAME}` stands for a variable of the
//! environment and `${NAME:-default}` for one that may be missing; `$${` is a `${` that is none. Spans of time are
//! written `10s`, `250ms` or `1h30m` (units d, h, m, s, ms), amounts of memory `64MiB` or `10MB`. Keys that are not
//! named here are errors, but for the options of connectors. Relative paths start at the job file's folder.
//!
//! # `[job]`
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `name` | required | letters, digits, `_`, `-` and `.` |
//! | `parallelism` | 1 | subtasks of each node that does not say otherwise; at most 256, as each has a thread of its own in the one process that runs a job, with at most 1,000 instances of functions and 131,072 channels in all |
//! | `max-parallelism` | 128 | number of key groups, 1 to 32768: no node can have more subtasks, and it stays as it is for the life of a job |
//! | `buffer-timeout` | `"1ms"` | how long a row waits in an exchange for others; `"0ms"` sends at once |
//! | `watermark-interval` | `"200ms"` | how often a source sends watermarks |
//! | `checkpoint` | none | see below; without it a job takes no checkpoints unless the command says where |
//!
//! `checkpoint = { interval = "10s", dir = "checkpoints" }` has the job's state stored as it goes, so that it can go on
//! from there: `interval` is the time from one to the next (default `"10s"`), `dir` a path or `file:PATH`, `mode`
//! `"exactly-once"` (the default) or `"at-least-once"`, which waits for no channel but may process rows twice after a
//! restore; `unaligned = true` has barriers overtake rows that wait, which the checkpoint has besides, so that it comes
//! through as fast where something is slow, at once or once `aligned-timeout` has passed since the checkpoint began
//! (default none); `min-pause` is the time between two at least (default none), `timeout` how long one may take (default
//! `"10m"`), `max-concurrent` how many may be under way (default 1), `tolerable-failures` how many may fail in a row
//! before the job does (default 3), `retain` how many are kept (default 3).
//!
//! `state = { backend = "rocksdb", memory = "512MB" }` keeps the state of process functions, windows and sessions in RocksDB
//! as far as it does not fit into `memory` (default `"512MB"`, at least `"16MiB"`), which all their subtasks share: half of
//! it for keys as they are used, half for RocksDB. `dir` is where its files go while the job runs (default: the system's
//! folder for temporary files; they are gone when it ends). Without it, or with `backend = "memory"`, all state is in
//! memory. `ttl = "24h"`, which may stand alone, has what a process function keeps for a key go when that key has had neither a row nor a timer for so long by the machine's clock, and up to a sixteenth of that
//! longer: all its values, lists and maps, not its timers. What a snapshot has of keys that were kept without a `ttl`, or
//! with another one, goes by this one from the next row or timer of the key on. How many keys that were is in the summary.
//!
//! `restart = { strategy = "fixed-delay" }` has a job that failed started again from its newest checkpoint. Without it a
//! failure is the end; on a cluster a job with checkpoints is started again for ever then.
//!
//! | `strategy` | keys |
//! |---|---|
//! | `"none"` | |
//! | `"fixed-delay"` | `attempts` (default 3), `delay` (default `"1s"`) |
//! | `"exponential-delay"` | for ever: `initial-delay` (default `"1s"`), half as much again at each failure, up to `max-delay` (default `"1m"`); the first again `reset-after` (default `"1h"`) without a failure |
//! | `"failure-rate"` | not more than `failures` (default 3) within `interval` (default `"10m"`), `delay` (default `"1s"`) |
//!
//! # `[module.NAME]`
//!
//! `path` of a component. `ref` is known and not available in this version. `allow` and `limits` hold for its functions
//! unless an operator has its own.
//!
//! `allow` grants what a component may do beyond computing. `"env:TOKEN"` puts the variable `TOKEN` of the host, which
//! has to be set, into the environment that the component sees through WASI; without a grant that is empty.
//! `"http:HOST"` is known and not available in this version.
//!
//! | key of `limits` | default | meaning |
//! |---|---|---|
//! | `memory` | `"256MiB"` | memory that an instance may have |
//! | `call-timeout` | `"10s"` | how long one call may compute |
//! | `output` | `"512MiB"` | bytes that one call may hand over |
//! | `recycle-memory` | none | an instance that has more memory than this after a call is closed, and a fresh one is opened for the next: for functions that do not give memory back. What a function holds in variables of its own is lost then; states are not |
//!
//! # `[source.NAME]`
//!
//! `connector` is required. Keys that are not in this table are the connector's own.
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `schema` | as the connector says | `{ column = "type" }` in order; a `?` behind a type allows null |
//! | `time` | none | see below |
//! | `parallelism`, `id`, `chain` | | as for operators |
//! | `on-error` | `"fail"` | what happens to input that cannot be read, as for operators |
//!
//! `time = { column = "ts", out-of-orderness = "10s", idle = "30s" }` says which column has a row's event time (a
//! timestamp, or an int64 of milliseconds since the epoch; not null), how far a row may stand behind the latest one
//! without being late (default `"0ms"`), and after how long without a row the source no longer holds up others
//! (default: never). `alignment = "10s"` lets no subtask of the source get further ahead of its slowest one than that,
//! by their watermarks; with `alignment-group = "name"` beside it, of the slowest one of all sources with that group.
//! `"off"` lets them drift. Without `alignment` subtasks that read the same event time side by side (those of a
//! generator) are kept within half a million rows of each other; those that read a file in pieces are not, as each reads
//! another part of the time.
//!
//! # `[operator.NAME]`
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `function` | | `"module.function"` |
//! | `builtin` | | in place of `function`: `"union"` or `"watermark"` (which needs `time`) |
//! | `input` | required | `"node"` or `"node.port"`; an array is their union; `{ left = "a", right = "b" }` names ports |
//! | `columns` | `{}` | `{ name-in-function = "name-in-stream" }` where they differ |
//! | `key` | none | columns by which rows are dealt out and keyed; `[]` is one key for the whole stream |
//! | `window` | none | see below; required by aggregate and window functions |
//! | `parameters` | `{}` | of the function |
//! | `parallelism` | the job's | number of subtasks; 1 where there is one key for the whole stream |
//! | `partition` | see below | `"forward"`, `"rebalance"`, `"hash"` (by `key`), `"broadcast"`, `"global"` (all to subtask 0) |
//! | `chain` | `true` | `false`: in a task of its own |
//! | `id` | the name | under which its state is kept, for ever |
//! | `time` | none | event times and watermarks for what the operator makes, as for a source |
//! | `on-error` | `"fail"` | a row that the function refuses: `"fail"`, `"skip"` it, or `"dead-letter"` |
//! | `on-trap` | `"fail"` | `"isolate"` (map functions): find the row that traps, which then follows `on-error` |
//! | `on-null` | | `"reject"`: a null in a column that the function takes without null makes a refused row; else this is an error of the plan |
//! | `state-ttl` | the job's `state.ttl` | of a process function: how long what it keeps for a key stays when nothing is about it |
//! | `allow`, `limits` | the module's | as for modules |
//!
//! A port is a side output of a function, a port of a source, or one of two that are reserved: `late` has the rows that
//! came too late for their windows, `dead-letter` those that could not be used, with the columns `operator`, `subtask`,
//! `position`, `reason` and `row` (JSON). Without a port the first one is meant.
//!
//! Rows go by `hash` to an operator with a key, forward where both sides have the same parallelism, to subtask 0 where
//! the reader has only that, else in turn. Process functions need a key; aggregate and window functions without one are
//! over the whole stream.
//!
//! # `window`
//!
//! | key | meaning |
//! |---|---|
//! | `tumbling = "1d"` | windows of that size side by side |
//! | `sliding = "10s", slide = "2s"` | windows of that size, one every `slide`, which is at most the size; a row may be in 100,000 of them, and in 1,000 where the function sees whole windows, each of which keeps its rows |
//! | `session = "12h"` | until no row comes for that long |
//! | `global = true` | one window for everything |
//! | `offset = "1h"` | shifts tumbling and sliding windows; less than their distance |
//! | `clock = "event"` | or `"processing"`: the time by which rows belong to windows |
//! | `trigger` | `"event-time"` or `"processing-time"` (at the window's end, the default of that clock), `{ count = 100 }` (whenever so many rows have come, not at the end), `{ continuous = "10s" }` (when the clock passes multiples of it, once however many it passes, and at the end) |
//! | `purge = true` | clears a window whenever it fires; a global window with a count trigger and `purge` is a count window |
//! | `lateness = "1h"` | how long after its end a window takes late rows; event time only |
//! | `start = "day"`, `end = "day_end"` | adds the window's bounds to the output under these names, as timestamps |
//!
//! A global window without a trigger fires at the end of the input.
//!
//! # `[sink.NAME]`
//!
//! `connector` and `input` are required; `parallelism`, `partition`, `key` (for `"hash"`), `id` and `chain` are as for
//! operators. All other keys are the connector's own.

mod checkpoint;
mod grant;
mod inputs;
mod job;
mod module;
mod node;
mod operator;
mod parameter;
mod restart;
mod state;
mod time;
mod window;

use std::path::Path;

pub(crate) use inputs::{InputTable, StreamName};
pub(crate) use job::too_wide;
pub(crate) use module::ModuleTable;
pub(crate) use node::{ConnectorOptions, NodeTable, NodeTableBody, PartitionName, SinkTable, SourceTable};
pub(crate) use operator::{OperatorTable, Work};
pub(crate) use parameter::{Scalar, expected};
pub(crate) use time::TimeTable;
pub(crate) use window::WindowTable;

use crate::{
    JobSettings,
    document::{Entry, Value, parse_json, parse_toml},
    problem::{Problem, Problems},
    source_text::SourceText,
    table_reader::TableReader,
};

/// A job file that has been read, with what is wrong in it so far. [`Plan::new`](crate::Plan::new) goes on from here
/// and reports everything at once.
#[derive(Debug)]
pub struct JobFile {
    pub(crate) source: SourceText,
    pub(crate) settings: JobSettings,
    pub(crate) modules: Vec<ModuleTable>,
    /// Sources, operators and sinks in the order of the file.
    pub(crate) nodes: Vec<NodeTable>,
    pub(crate) problems: Problems,
    /// Whether the syntax is good and the tables are worth a look.
    pub(crate) readable: bool,
}

/// How a job file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFormat {
    /// What people write.
    Toml,
    /// What the API sends.
    Json,
}

impl JobFormat {
    /// JSON for a path that ends in `.json`, else TOML.
    pub fn of_path(path: &Path) -> Self {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) { Self::Json } else { Self::Toml }
    }
}

impl JobFile {
    /// Reads a job file. `variables` looks variables up; to ask the environment, pass `|name| env::var(name).ok()`.
    pub fn read(source: SourceText, format: JobFormat, variables: &dyn Fn(&str) -> Option<String>) -> Self {
        let problems = Problems::default();
        let table = match format {
            JobFormat::Toml => parse_toml(source.text(), variables, &problems),
            JobFormat::Json => parse_json(source.text(), variables, &problems),
        };
        let readable = table.is_some();
        let table = table.unwrap_or_default();
        let mut reader = TableReader::new("the job file", &(0..0), &table, &problems);
        let settings = job::read(&mut reader, readable);
        let modules = section(&mut reader, "module")
            .map(|(name, e)| module::read(name, e, variables, &problems))
            .collect();
        let sources = section(&mut reader, "source").map(|(name, e)| node::read_source(name, e, &problems));
        let mut nodes: Vec<NodeTable> = sources.flatten().collect();
        nodes.extend(
            section(&mut reader, "operator")
                .filter_map(|(name, e)| operator::read(name, e, variables, &problems)),
        );
        nodes
            .extend(section(&mut reader, "sink").filter_map(|(name, e)| node::read_sink(name, e, &problems)));
        reader.finish();
        nodes.sort_by_key(|n| n.name.span.start);
        Self { source, settings, modules, nodes, problems, readable }
    }

    /// What holds for the whole job, as far as it could be read.
    pub fn settings(&self) -> &JobSettings {
        &self.settings
    }

    /// Puts another parallelism in the place of the one in `[job]`; nodes with one of their own keep it.
    pub fn set_parallelism(&mut self, parallelism: u32) {
        let (max, reason, help) = self.settings.most_subtasks();
        if parallelism == 0 || parallelism > max {
            let message = format!("parallelism {parallelism} cannot be: expected 1 to {max}, {reason}");
            let help = help.filter(|_| parallelism > max).map(str::to_owned);
            self.problems.push(Problem::error(message).maybe_help(help));
        }
        self.settings.parallelism = parallelism;
    }

    /// The text it was read from.
    pub fn source(&self) -> &SourceText {
        &self.source
    }
}

/// The tables of a section with their names, which have to be plain words as `node.port` splits at the dot.
fn section<'a>(
    reader: &mut TableReader<'a>,
    key: &'static str,
) -> impl Iterator<Item = (String, &'a Entry)> + use<'a> {
    let problems = reader.problems;
    let entries = match reader.entry(key) {
        None => &[][..],
        Some(Entry { node, .. }) => match &node.value {
            Value::Table(table) => table.entries.as_slice(),
            _ => {
                reader.wrong_type(key, node, &format!("a section of tables such as [{key}.name]"));
                &[]
            }
        },
    };
    entries.iter().map(move |entry| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if entry.key.is_empty() || !entry.key.chars().all(plain) {
            let message =
                format!("`{}` is no name for a {key}: expected letters, digits, `_` and `-`", entry.key);
            problems.push(Problem::error(message).at(&entry.key_span, "here"));
        }
        (entry.key.clone(), entry)
    })
}
