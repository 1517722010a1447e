//! What stands between the host's interfaces and a user's function: one trait a kind, called with whole batches.
//!
//! The attributes implement these traits. They are public for who writes a function by hand.

use thiserror::Error;

use crate::column::{Batch, Mismatch};
use crate::host::Cells;
use crate::manifest::{FunctionSpec, Migration, ModuleSpec, ParameterSpec, StateSpec, describe};
pub use crate::outcome::{Origin, Outcome, PortOutput};
pub use crate::reject::Rejected;
use crate::time::{Clock, Window};
use crate::timers::ProcessContext;

/// A call that the function refuses as a whole.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The batch does not have the declared shape.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A port that the function does not have.
    #[error("expected an input port below {ports}, found port {found}")]
    Port {
        /// Ports that it has.
        ports: u32,
        /// The port of the call.
        found: u32,
    },
    /// A call before `open` or after `close`, or of another kind.
    #[error("a call to a function of kind {expected}, but the open one is of kind {found}")]
    Kind {
        /// Kind of the call.
        expected: &'static str,
        /// What is open.
        found: &'static str,
    },
    /// The function's own reason.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for CallError {
    fn from(reason: String) -> Self {
        CallError::Refused(reason)
    }
}

impl From<crate::Reject> for CallError {
    fn from(reject: crate::Reject) -> Self {
        CallError::Refused(reject.reason().to_owned())
    }
}

/// Result of a call.
pub type Call<T = Outcome> = Result<T, CallError>;

/// A function that a module may list.
pub trait Function {
    /// What the manifest says of it.
    fn spec() -> FunctionSpec;
    /// Opens it: reads parameters, opens states.
    fn open() -> Result<Opened, String>;
}

/// An open function.
pub enum Opened {
    /// Row by row.
    Map(Box<dyn MapFunction>),
    /// Keyed, with state and timers.
    Process(Box<dyn ProcessFunction>),
    /// Incremental aggregation.
    Aggregate(Box<dyn AggregateFunction>),
    /// Whole windows.
    Window(Box<dyn WindowFunction>),
}

impl Opened {
    /// Kind, for error texts.
    pub fn kind(&self) -> &'static str {
        match self {
            Opened::Map(_) => "map",
            Opened::Process(_) => "process",
            Opened::Aggregate(_) => "aggregate",
            Opened::Window(_) => "window",
        }
    }

    /// Its hooks.
    pub fn hooks(&mut self) -> &mut dyn Hooks {
        match self {
            Opened::Map(function) => function.as_mut(),
            Opened::Process(function) => function.as_mut(),
            Opened::Aggregate(function) => function.as_mut(),
            Opened::Window(function) => function.as_mut(),
        }
    }
}

/// Moments besides the rows.
pub trait Hooks {
    /// Before a barrier passes; what it emits goes out before the barrier.
    fn before_barrier(&mut self) -> Call {
        Ok(Outcome::default())
    }

    /// When the input has ended.
    fn end_of_input(&mut self) -> Call {
        Ok(Outcome::default())
    }

    /// Before the instance goes away in good order.
    fn close(&mut self) {}
}

/// Rows for a map function.
#[derive(Debug)]
pub struct MapCall {
    /// The declared columns.
    pub rows: Batch,
    /// Event time of each row, if asked for.
    pub times: Option<Vec<i64>>,
}

/// A function from rows to rows.
pub trait MapFunction: Hooks {
    /// Handles a batch.
    fn apply(&mut self, call: MapCall) -> Call;
}

/// Rows with their keys.
#[derive(Debug)]
pub struct KeyedCall {
    /// Input port.
    pub port: u32,
    /// The port's declared columns.
    pub rows: Batch,
    /// Event time of each row, if asked for.
    pub times: Option<Vec<i64>>,
    /// The distinct keys of the call.
    pub keys: Batch,
    /// Position of each row's key in `keys`.
    pub key_of_row: Vec<u32>,
    /// The watermark.
    pub watermark: i64,
}

/// Timers that are due, at most one a key.
#[derive(Debug)]
pub struct TimerCall {
    /// Their clock.
    pub clock: Clock,
    /// The keys.
    pub keys: Batch,
    /// Time of each key's timer.
    pub times: Vec<i64>,
    /// The watermark.
    pub watermark: i64,
}

/// A keyed function with state and timers.
pub trait ProcessFunction: Hooks {
    /// Handles a batch.
    fn process(&mut self, call: KeyedCall) -> Call;
    /// Handles due timers.
    fn on_timer(&mut self, call: TimerCall) -> Call;
}

/// Rows with their groups' accumulators.
#[derive(Debug)]
pub struct AccumulateCall {
    /// The declared columns.
    pub rows: Batch,
    /// Event time of each row, if asked for.
    pub times: Option<Vec<i64>>,
    /// Position of each row's group.
    pub group_of_row: Vec<u32>,
    /// One accumulator a group; an absent one is a new group.
    pub accumulators: Cells,
}

/// Accumulators after a call.
#[derive(Debug, PartialEq)]
pub struct Accumulated {
    /// One a group.
    pub accumulators: Batch,
    /// Refused rows.
    pub rejected: Vec<Rejected>,
}

/// Groups that are finished, for now.
#[derive(Debug)]
pub struct FinishCall {
    /// One accumulator a group.
    pub accumulators: Batch,
    /// Distinct keys.
    pub keys: Batch,
    /// Position of each group's key.
    pub key_of_group: Vec<u32>,
    /// Window of each group.
    pub windows: Vec<Window>,
}

/// Incremental aggregation.
pub trait AggregateFunction: Hooks {
    /// Adds rows to their groups.
    fn accumulate(&mut self, call: AccumulateCall) -> Call<Accumulated>;
    /// Merges accumulators pairwise.
    fn merge(&mut self, into: Batch, other: Batch) -> Call<Batch>;
    /// Makes output of accumulators, which stay.
    fn finish(&mut self, call: FinishCall) -> Call;
}

/// Content of fired windows.
#[derive(Debug)]
pub struct WindowCall {
    /// The declared columns.
    pub rows: Batch,
    /// Event time of each row, if asked for.
    pub times: Option<Vec<i64>>,
    /// Rows of window i are `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<u32>,
    /// Distinct keys.
    pub keys: Batch,
    /// Position of each window's key.
    pub key_of_window: Vec<u32>,
    /// The windows.
    pub windows: Vec<Window>,
}

/// A function of whole windows.
pub trait WindowFunction: Hooks {
    /// Handles fired windows.
    fn apply(&mut self, call: WindowCall) -> Call;
}

/// A function in a module's list.
#[derive(Clone, Copy)]
pub struct Entry {
    spec: fn() -> FunctionSpec,
    open: fn() -> Result<Opened, String>,
}

impl Entry {
    /// Entry of a function.
    pub fn of<F: Function>() -> Self {
        Self { spec: F::spec, open: F::open }
    }
}

/// The functions that a component exports; [`module!`](crate::module!) implements it.
pub trait Module {
    /// What the manifest says of the module.
    const SPEC: ModuleSpec;
    /// Its functions.
    fn functions() -> Vec<Entry>;

    /// The manifest.
    fn describe() -> String {
        let functions: Vec<_> = Self::functions().iter().map(|entry| (entry.spec)()).collect();
        describe(Self::SPEC, &functions)
    }

    /// What takes stored values of a version of a function's state over; its accumulators are the state `windows`.
    fn migration(function: &str, state: &str, from: u32) -> Result<Migration, String> {
        let mut specs = Self::functions().into_iter().map(|entry| (entry.spec)());
        let spec = specs.find(|spec| spec.name == function);
        let (states, accumulator) = spec.map(|spec| (spec.states, spec.accumulator)).unwrap_or_default();
        let declared = states.into_iter().find(|spec| spec.name == state).map(|spec| spec.migrations);
        let accumulators = accumulator.filter(|_| state == "windows").map(|spec| spec.migrations);
        let migrations = declared.or(accumulators).unwrap_or_default();
        let found = migrations.into_iter().find(|migration| migration.from == from);
        found.ok_or_else(|| format!("`{function}` does not take over `{state}` of version {from}"))
    }

    /// Opens the function of this name, which must be of this kind.
    fn open(name: &str, kind: &'static str) -> Result<Opened, String> {
        let functions: Vec<_> = Self::functions().into_iter().map(|entry| ((entry.spec)(), entry)).collect();
        let Some((spec, entry)) = functions.iter().find(|(spec, _)| spec.name == name) else {
            let names: Vec<_> = functions.iter().map(|(spec, _)| spec.name.as_str()).collect();
            return Err(format!("no function `{name}` in this module: expected one of {}", names.join(", ")));
        };
        match spec.kind.name() == kind {
            true => (entry.open)(),
            false => {
                Err(format!("`{name}` is of kind {}: expected a function of kind {kind}", spec.kind.name()))
            }
        }
    }
}

/// Event times of a call's rows.
#[doc(hidden)]
pub struct Times<'a>(Option<&'a [i64]>);

impl<'a> Times<'a> {
    /// Looks at the times of so many rows.
    pub fn of(times: &'a Option<Vec<i64>>, rows: usize) -> Result<Self, Mismatch> {
        match times {
            Some(times) if times.len() != rows => Err(Mismatch::Rows { expected: rows, found: times.len() }),
            times => Ok(Self(times.as_deref())),
        }
    }

    /// Time of a row.
    #[inline]
    pub fn at(&self, row: usize) -> crate::EventTime {
        self.0.map_or(crate::EventTime::NONE, |times| crate::EventTime::from_raw(times[row]))
    }
}

/// What a function's struct holds; `#[derive(Function)]` implements it.
pub trait Fields: Sized {
    /// Whether one of its states is kept by key.
    const KEYED: bool;
    /// Specifications of its states.
    fn states() -> Vec<StateSpec>;
    /// Specifications of its parameters.
    fn parameters() -> Vec<ParameterSpec>;
    /// Opens states and reads parameters.
    fn open() -> Result<Self, String>;
    /// Starts a call with so many keys.
    fn begin(&mut self, keys: usize);
    /// Says which of the call's keys is the current one.
    fn select(&mut self, key: usize);
    /// Ends a call: states write back what changed.
    fn flush(&mut self);
}

/// A function's struct together with its context.
#[doc(hidden)]
pub struct Running<F> {
    pub function: F,
    pub context: ProcessContext,
}

impl<F: Fields> Running<F> {
    /// Opens it.
    pub fn open() -> Result<Self, String> {
        Ok(Self { function: F::open()?, context: ProcessContext::default() })
    }

    /// Starts a call.
    pub fn begin(&mut self, keys: usize, watermark: i64) {
        self.function.begin(keys);
        self.context.begin(watermark);
    }

    /// Says which of the call's keys is the current one.
    #[inline(always)]
    pub fn select(&mut self, key: usize) {
        self.function.select(key);
        self.context.select(key);
    }

    /// Ends a call.
    pub fn flush(&mut self) {
        self.function.flush();
        self.context.flush();
    }
}
