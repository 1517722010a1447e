//! What the host calls: the typed exports of an instance.

use millstream_types::FunctionKind;
use wasmtime::{
    Store,
    component::{ComponentNamedList, ComponentType, Instance, Lift, Lower, TypedFunc},
};

use crate::{
    bindings::types::{Batch, Cells, Outcome, Rejected, Window},
    boundary::params::{BatchParam, CellsParam, FiredParam, KeyedBatchParam},
    imports::Guest,
    interfaces::Interfaces,
};

/// What most exports return.
pub(crate) type Fallible<T> = (Result<T, String>,);
type Export<P, R> = TypedFunc<P, R>;
type Param = BatchParam<'static>;
type Times = Option<&'static [i64]>;
type Positions = &'static [u32];

/// The exports of a function's interface, and those of its life cycle.
pub(crate) struct Exports {
    /// `open`, which every kind has.
    pub(crate) open: Export<(&'static str,), Fallible<()>>,
    /// `close`, which every kind has.
    pub(crate) close: Export<(), ()>,
    /// What the kind has.
    pub(crate) kind: KindExports,
    /// The life-cycle calls, if the module has them.
    pub(crate) lifecycle: Option<LifecycleExports>,
    /// What takes stored values of earlier versions over, if the module has it.
    pub(crate) migrate: Option<Migrate>,
}

/// The state, the version that is stored, and its values.
type Migrate = Export<(&'static str, u32, CellsParam<'static>), Fallible<Cells>>;

/// The calls of a kind of function.
pub(crate) enum KindExports {
    Map(MapExports),
    Process(ProcessExports),
    Aggregate(AggregateExports),
    Window(WindowExports),
}

pub(crate) struct MapExports {
    pub(crate) apply: Export<(Param, Times), Fallible<Outcome>>,
}

pub(crate) struct ProcessExports {
    pub(crate) process: Export<(KeyedBatchParam<'static>,), Fallible<Outcome>>,
    pub(crate) on_timer: Export<(FiredParam<'static>,), Fallible<Outcome>>,
}

pub(crate) struct AggregateExports {
    pub(crate) accumulate: Export<(Param, Times, Positions, CellsParam<'static>), Fallible<Accumulated>>,
    pub(crate) merge: Export<(Param, Param), Fallible<Batch>>,
    pub(crate) finish: Export<(Param, Param, Positions, &'static [Window]), Fallible<Outcome>>,
}

pub(crate) struct WindowExports {
    pub(crate) apply: Export<WindowParams, Fallible<Outcome>>,
}

/// Rows, times, offsets, keys, the key of each window, windows.
type WindowParams = (Param, Times, Positions, Param, Positions, &'static [Window]);

pub(crate) struct LifecycleExports {
    pub(crate) before_barrier: Export<(), Fallible<Outcome>>,
    pub(crate) end_of_input: Export<(), Fallible<Outcome>>,
}

/// `aggregate-function.accumulated`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct Accumulated {
    pub(crate) accumulators: Batch,
    pub(crate) rejected: Vec<Rejected>,
}

/// `manifest.describe`.
pub(crate) fn describe(
    store: &mut Store<Guest>,
    instance: &Instance,
    interfaces: &Interfaces,
) -> wasmtime::Result<Export<(), (String,)>> {
    Loader::new(store, instance, interfaces.export("manifest").unwrap_or_default())?.typed("describe")
}

impl Exports {
    /// Finds the exports behind which functions of a kind stand. Types that are not those of `wit/` are errors.
    pub(crate) fn load(
        store: &mut Store<Guest>,
        instance: &Instance,
        interfaces: &Interfaces,
        kind: FunctionKind,
    ) -> wasmtime::Result<Self> {
        let interface = interfaces.for_kind(kind).map_err(wasmtime::Error::msg)?;
        let mut exports = Loader::new(store, instance, interface)?;
        let (open, close) = (exports.typed("open")?, exports.typed("close")?);
        let kind = match kind {
            FunctionKind::Map => KindExports::Map(MapExports { apply: exports.typed("apply")? }),
            FunctionKind::Process => KindExports::Process(ProcessExports {
                process: exports.typed("process")?,
                on_timer: exports.typed("on-timer")?,
            }),
            FunctionKind::Aggregate => KindExports::Aggregate(AggregateExports {
                accumulate: exports.typed("accumulate")?,
                merge: exports.typed("merge")?,
                finish: exports.typed("finish")?,
            }),
            FunctionKind::Window => KindExports::Window(WindowExports { apply: exports.typed("apply")? }),
            FunctionKind::Async => {
                return Err(wasmtime::Error::msg(
                    "async functions are not served by this version of the host",
                ));
            }
        };
        let lifecycle = match interfaces.export("lifecycle") {
            Some(interface) => Some(LifecycleExports::load(store, instance, interface)?),
            None => None,
        };
        let migrate = match interfaces.export("migration") {
            Some(interface) => Some(Loader::new(store, instance, interface)?.typed("migrate")?),
            None => None,
        };
        Ok(Self { open, close, kind, lifecycle, migrate })
    }
}

impl LifecycleExports {
    fn load(store: &mut Store<Guest>, instance: &Instance, interface: &str) -> wasmtime::Result<Self> {
        let mut exports = Loader::new(store, instance, interface)?;
        Ok(Self {
            before_barrier: exports.typed("before-barrier")?,
            end_of_input: exports.typed("end-of-input")?,
        })
    }
}

/// Finds the functions of one exported interface.
struct Loader<'a> {
    store: &'a mut Store<Guest>,
    instance: &'a Instance,
    interface: &'a str,
    index: wasmtime::component::ComponentExportIndex,
}

impl<'a> Loader<'a> {
    fn new(
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        interface: &'a str,
    ) -> wasmtime::Result<Self> {
        let missing = || wasmtime::Error::msg(format!("no export `{interface}`"));
        let index = instance.get_export_index(&mut *store, None, interface).ok_or_else(missing)?;
        Ok(Self { store, instance, interface, index })
    }

    fn typed<P, R>(&mut self, name: &str) -> wasmtime::Result<TypedFunc<P, R>>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        let index = self.instance.get_export_index(&mut *self.store, Some(&self.index), name);
        let index =
            index.ok_or_else(|| wasmtime::Error::msg(format!("{} has no `{name}`", self.interface)))?;
        let typed = self.instance.get_typed_func(&mut *self.store, index);
        typed.map_err(|e| {
            wasmtime::Error::msg(format!(
                "`{name}` of {} has other types than this host's: {e:#}",
                self.interface
            ))
        })
    }
}
