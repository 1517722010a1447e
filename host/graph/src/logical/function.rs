//! How a function is called: which columns go in, under which key, and how its output becomes rows again.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use millstream_types::{DataType, Function, FunctionKind, Manifest, Schema};

use super::{Grant, WindowSpec};

/// A module that the job uses.
#[derive(Clone, Debug)]
pub struct LogicalModule {
    /// What the job file calls it.
    pub name: String,
    /// Where it lies, as it was given to the [`ModuleResolver`](crate::ModuleResolver).
    pub path: PathBuf,
    /// What is in it.
    pub manifest: Arc<Manifest>,
}

/// A call of a user's function.
#[derive(Clone, Debug)]
pub struct FunctionNode {
    /// Position of its module in [`LogicalGraph::modules`](crate::LogicalGraph::modules).
    pub module: usize,
    /// What the module says of it.
    pub declaration: Arc<Function>,
    /// Its parameters as text, defaults filled in: all that it declares, and no others.
    pub parameters: BTreeMap<String, String>,
    /// What goes in, by input port.
    pub inputs: Vec<FunctionInput>,
    /// By what its rows are keyed. Always there for process, aggregate and window functions; a map function has one
    /// only so that its rows are dealt out by it.
    pub key: Option<KeyPlan>,
    /// For how long what a process function keeps for a key stays when nothing is about the key; none for ever.
    pub state_ttl: Option<Duration>,
    /// The windows of an aggregate or window function.
    pub window: Option<WindowSpec>,
    /// What comes out, by output port of the function.
    pub outputs: Vec<OutputPlan>,
    /// The budgets of its instances.
    pub limits: FunctionLimits,
    /// What it is allowed beyond computing.
    pub allow: Vec<Grant>,
}

/// What goes in at an input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInput {
    /// The columns in the order in which the function declares them.
    pub columns: Vec<BoundColumn>,
    /// Whether event times go in too.
    pub times: bool,
}

/// A column of a stream that stands for one of a function's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundColumn {
    /// Its position in the stream's schema; for the key columns that a function sees, its position in the key.
    pub column: usize,
    /// The wider type to which it is cast first.
    pub cast: Option<DataType>,
    /// Whether a row without a value is refused before the call, as the function does not take null.
    pub reject_null: bool,
}

/// By what rows are keyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlan {
    /// Positions of the key columns in the input's schema. None: all rows have the one empty key, and the node's
    /// parallelism is 1.
    pub columns: Vec<usize>,
    /// The key columns as the stream has them; keys are encoded in these types.
    pub schema: Schema,
    /// The key columns that the function sees, in its order: all of them or none.
    pub function_columns: Vec<BoundColumn>,
}

impl KeyPlan {
    /// Whether all rows have the same key.
    pub fn is_whole_stream(&self) -> bool {
        self.columns.is_empty()
    }
}

/// How what a function makes becomes rows of an output port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPlan {
    /// The columns of the rows.
    pub schema: Schema,
    /// Where each column comes from when origins are rows, or for aggregate and window functions, windows.
    pub columns: Vec<OutputColumn>,
    /// The same for what a process function makes in a timer, whose origin has a key and no row. None where the port
    /// carries a column that is not in the key: a timer cannot emit there.
    pub timer_columns: Option<Vec<OutputColumn>>,
}

/// Where a column of an output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputColumn {
    /// This column of the origin row, by reference.
    Input(usize),
    /// This column of the origin's key.
    Key(usize),
    /// This column of those that the function makes at the port.
    Made(usize),
    /// The start of the origin's window, a timestamp.
    WindowStart,
    /// The end of the origin's window, a timestamp.
    WindowEnd,
}

/// Budgets of a function's instances; what is not set is as the worker has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionLimits {
    /// Bytes of memory that an instance may have.
    pub memory: Option<u64>,
    /// How long one call may compute.
    pub call_timeout: Option<Duration>,
    /// Bytes that one call may hand over to the host.
    pub output: Option<u64>,
    /// Bytes of memory above which an instance is replaced by a fresh one once its call is done.
    pub recycle_memory: Option<u64>,
}

/// What messages and plans call a kind of function.
pub(crate) fn kind_name(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Map => "map",
        FunctionKind::Process => "process",
        FunctionKind::Aggregate => "aggregate",
        FunctionKind::Window => "window",
        FunctionKind::Async => "async",
    }
}
