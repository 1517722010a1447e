//! What a module tells the host about itself: function specifications, and the JSON document made of them.

mod json;

use crate::column::{Batch, ColumnSpec, Mismatch, Type};
use crate::time::Clock;

use self::json::Json;

/// Which interface calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Row by row, without state.
    Map,
    /// Keyed, with state and timers.
    Process,
    /// Incremental aggregation.
    Aggregate,
    /// The rows of a window at once.
    Window,
}

impl Kind {
    /// Name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Map => "map",
            Kind::Process => "process",
            Kind::Aggregate => "aggregate",
            Kind::Window => "window",
        }
    }
}

/// What the host does with a row's other columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// Adds them by reference.
    Extend,
    /// Leaves them out.
    Replace,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Name in the job file.
    pub name: String,
    /// Its type.
    pub r#type: Type,
    /// Text that stands for it where the job file has none; without one the parameter is required.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
}

/// One input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// Name of the port.
    pub name: String,
    /// Whether rows come by key; else any subtask gets any row.
    pub keyed: bool,
    /// Columns that are read.
    pub columns: Vec<ColumnSpec>,
    /// Whether event times are read.
    pub times: bool,
}

/// One output port; the first is the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// Name of the port.
    pub name: String,
    /// Columns that are made.
    pub columns: Vec<ColumnSpec>,
    /// What becomes of the others.
    pub carry: Carry,
}

/// How a state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// One value a key.
    Value,
    /// A list a key.
    List,
    /// A map a key.
    Map,
    /// Of the subtask, not of a key; dealt out anew when the parallelism changes.
    OperatorSplit,
    /// Of the subtask, not of a key; given whole to every subtask when the parallelism changes.
    OperatorUnion,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpec {
    /// Name under which it is kept.
    pub name: String,
    /// How it is kept.
    pub kind: StateKind,
    /// Columns of its values.
    pub columns: Vec<ColumnSpec>,
    /// Version of its values.
    pub version: u32,
    /// How values of earlier versions become values of this one.
    pub migrations: Vec<Migration>,
}

/// Makes stored values of an earlier version values of the current one.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The earlier version.
    pub from: u32,
    /// Makes of each of its values one of the current version.
    pub rows: fn(&Batch) -> Result<Batch, Mismatch>,
}

/// Two are equal if they are from the same version: a state has one of each.
impl PartialEq for Migration {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from
    }
}

impl Eq for Migration {}

/// The accumulator of an aggregate function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccumulatorSpec {
    /// Its columns.
    pub columns: Vec<ColumnSpec>,
    /// Its version.
    pub version: u32,
    /// How accumulators of earlier versions become ones of this one.
    pub migrations: Vec<Migration>,
    /// Whether two of them can be merged.
    pub merges: bool,
}

/// What the manifest says of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSpec {
    /// Name in job files, behind the module's.
    pub name: String,
    /// Which interface calls it.
    pub kind: Kind,
    /// First paragraph of its documentation.
    pub doc: String,
    /// Its parameters.
    pub parameters: Vec<ParameterSpec>,
    /// Its input ports.
    pub inputs: Vec<InputSpec>,
    /// Key columns that it wants to see.
    pub key: Vec<ColumnSpec>,
    /// Its output ports.
    pub outputs: Vec<OutputSpec>,
    /// Its states.
    pub states: Vec<StateSpec>,
    /// Its accumulator, if it aggregates.
    pub accumulator: Option<AccumulatorSpec>,
    /// Clocks that it sets timers on.
    pub timers: Vec<Clock>,
    /// Hooks that it wants called.
    pub lifecycle: Vec<Hook>,
}

impl FunctionSpec {
    /// A function of this name and kind that reads and makes nothing yet.
    pub fn new(name: &str, kind: Kind, doc: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            doc: doc.to_owned(),
            parameters: Vec::new(),
            inputs: Vec::new(),
            key: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            accumulator: None,
            timers: Vec::new(),
            lifecycle: Vec::new(),
        }
    }
}

/// A moment at which the host calls a function besides its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Before a barrier passes.
    BeforeBarrier,
    /// When the input has ended.
    EndOfInput,
}

/// What the manifest says of the module itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleSpec {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it is for.
    pub doc: &'static str,
}

/// Version of the manifest's format.
const VERSION: u32 = 1;

/// The manifest as JSON.
pub fn describe(module: ModuleSpec, functions: &[FunctionSpec]) -> String {
    let sdk = concat!("rust ", env!("CARGO_PKG_VERSION"));
    Json::object(|manifest| {
        manifest.number("manifest", VERSION);
        manifest.object_member("module", |it| {
            it.text("name", module.name)
                .text("version", module.version)
                .text("doc", module.doc)
                .text("sdk", sdk);
        });
        manifest.list("functions", functions, function);
    })
}

fn function(it: &mut Json, spec: &FunctionSpec) {
    it.text("name", &spec.name).text("kind", spec.kind.name()).text("doc", &spec.doc);
    it.list("parameters", &spec.parameters, parameter);
    it.list("inputs", &spec.inputs, input);
    it.list("key", &spec.key, column);
    it.list("outputs", &spec.outputs, output);
    it.list("states", &spec.states, state);
    if let Some(accumulator) = &spec.accumulator {
        it.object_member("accumulator", |it| {
            it.list("columns", &accumulator.columns, column).number("version", accumulator.version);
            migrates_from(it, &accumulator.migrations);
            if !accumulator.merges {
                it.flag("merges", false);
            }
        });
    }
    it.texts("timers", spec.timers.iter().map(|clock| clock.name()));
    it.texts("lifecycle", spec.lifecycle.iter().map(|hook| hook.name()));
}

fn parameter(it: &mut Json, spec: &ParameterSpec) {
    it.text("name", &spec.name).text("type", spec.r#type.name());
    if let Some(default) = &spec.default {
        it.text("default", default);
    }
    it.text("doc", &spec.doc);
}

fn input(it: &mut Json, spec: &InputSpec) {
    it.text("name", &spec.name).text("distribution", if spec.keyed { "keyed" } else { "any" });
    it.list("columns", &spec.columns, column).flag("times", spec.times);
}

fn output(it: &mut Json, spec: &OutputSpec) {
    it.text("name", &spec.name).list("columns", &spec.columns, column);
    it.text("carry", if spec.carry == Carry::Extend { "extend" } else { "replace" });
}

fn state(it: &mut Json, spec: &StateSpec) {
    let (kind, redistribution) = match spec.kind {
        StateKind::Value => ("value", None),
        StateKind::List => ("list", None),
        StateKind::Map => ("map", None),
        StateKind::OperatorSplit => ("operator", Some("split")),
        StateKind::OperatorUnion => ("operator", Some("union")),
    };
    it.text("name", &spec.name).text("kind", kind).list("columns", &spec.columns, column);
    it.number("version", spec.version);
    migrates_from(it, &spec.migrations);
    if let Some(redistribution) = redistribution {
        it.text("redistribution", redistribution);
    }
}

fn migrates_from(it: &mut Json, migrations: &[Migration]) {
    if !migrations.is_empty() {
        it.numbers("migrates-from", migrations.iter().map(|migration| migration.from));
    }
}

fn column(it: &mut Json, spec: &ColumnSpec) {
    it.text("name", &spec.name).text("type", spec.r#type.name()).flag("nullable", spec.nullable);
}

impl Hook {
    fn name(self) -> &'static str {
        match self {
            Hook::BeforeBarrier => "before-barrier",
            Hook::EndOfInput => "end-of-input",
        }
    }
}
