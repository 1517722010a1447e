//! What a guest may call: each file implements one interface of `wit/` on [`Guest`].

mod context;
mod log;
mod operator_state;
mod random;
mod state;
mod timers;
mod wasi;

use std::{mem, sync::Arc};

use millstream_operator::{CallContext, OperatorContext};
use millstream_state::StateId;
use millstream_types::Function;
use wasmtime::{
    Store, UpdateDeadline,
    component::{Component, HasSelf, Linker},
};

use self::{log::GuestLog, random::SplitMix64};
use crate::{bindings, limiter::MemoryLimiter, options::FunctionLimits, stop::Stop};

/// Names and values of variables.
pub(crate) type Environment = Arc<[(String, String)]>;

/// What a guest is doing, which decides what it may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It describes itself, or nothing.
    Idle,
    /// It is instantiated and opened: there is the subtask's state, and there are no keys.
    Opening,
    /// It handles a call.
    Call,
}

/// The data of a store: all that the imports of one instance work on.
pub(crate) struct Guest {
    /// The function that runs in it; none while a module is only asked for its manifest.
    function: Option<Arc<Function>>,
    place: Option<Arc<OperatorContext>>,
    limits: Arc<FunctionLimits>,
    /// Lent by the operator for the time of a call.
    call: CallContext,
    moment: Moment,
    memory: MemoryLimiter,
    /// Ticks that the current call may still compute for.
    ticks_left: u64,
    /// Bytes that the current call may still hand over to imports.
    bytes_left: usize,
    random: SplitMix64,
    log: GuestLog,
    printed: wasi::Printed,
    /// Variables that the job grants, which WASI shows as the environment.
    environment: Environment,
    /// The latest time, in nanoseconds, that WASI's monotonic clock has shown.
    monotonic: u64,
    panic: Option<String>,
    /// Where the states of the manifest are found, as far as they have been asked for.
    states: Vec<Option<StateId>>,
}

impl Guest {
    /// The data of a new instance. Without a function it may only describe itself.
    pub(crate) fn new(
        function: Option<Arc<Function>>,
        place: Option<Arc<OperatorContext>>,
        limits: Arc<FunctionLimits>,
        environment: Environment,
    ) -> Self {
        let states = vec![None; function.as_ref().map_or(0, |f| f.states.len())];
        Self {
            log: GuestLog::new(place.as_deref()),
            memory: MemoryLimiter::new(limits.memory_bytes),
            call: CallContext::default(),
            moment: Moment::Idle,
            ticks_left: 0,
            bytes_left: limits.call_bytes,
            random: SplitMix64::new(0),
            printed: wasi::Printed::default(),
            environment,
            monotonic: 0,
            panic: None,
            states,
            function,
            place,
            limits,
        }
    }

    /// Starts the budgets of a call anew; `ticks` is the computing time of a call in ticks of the engine.
    pub(crate) fn grant(&mut self, ticks: u64) {
        self.ticks_left = ticks;
        self.bytes_left = self.limits.call_bytes;
        self.panic = None;
    }

    /// Takes over what the operator lends for a call, or for opening the function.
    pub(crate) fn begin(&mut self, moment: Moment, call: &mut CallContext) {
        mem::swap(&mut self.call, call);
        self.random = SplitMix64::new(self.call.seed);
        self.moment = moment;
    }

    /// Gives it back.
    pub(crate) fn end(&mut self, call: &mut CallContext) {
        mem::swap(&mut self.call, call);
        self.moment = Moment::Idle;
        self.printed.flush(&mut self.log);
    }

    /// What the guest's panic hook said.
    pub(crate) fn take_panic(&mut self) -> Option<String> {
        self.panic.take()
    }

    /// Bytes of linear memory in use.
    pub(crate) fn memory_used(&self) -> usize {
        self.memory.used()
    }

    /// One more tick has passed while the guest computed.
    fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.ticks_left = self.ticks_left.saturating_sub(1);
        if self.ticks_left == 0 {
            return Err(wasmtime::Error::new(Stop::CallTime { limit: self.limits.call_time }));
        }
        Ok(UpdateDeadline::Yield(1))
    }

    /// The guest hands over some bytes to an import.
    fn take_bytes(&mut self, bytes: usize) -> Result<(), Stop> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(Stop::CallBytes { limit: self.limits.call_bytes })?;
        Ok(())
    }
}

/// Puts the budgets of a function into force for a store.
pub(crate) fn limit(store: &mut Store<Guest>) {
    let call_bytes = store.data().limits.call_bytes;
    store.set_hostcall_fuel(call_bytes);
    store.limiter(|guest| &mut guest.memory);
    store.epoch_deadline_callback(|mut store| store.data_mut().tick());
}

/// Names what this host serves.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    bindings::context::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    bindings::state::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    bindings::operator_state::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    bindings::timers::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)
}

/// What a component can be linked with: what this host serves and, for those that import it, WASI.
pub(crate) fn linker_for(linker: &Linker<Guest>, component: &Component) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = linker.clone();
    wasi::add_to_linker(&mut linker, component)?;
    Ok(linker)
}

/// Whether an import of a component is served. Patch releases of an interface are one interface.
pub(crate) fn serves(import: &str) -> bool {
    const SERVED: [&str; 5] = ["types", "context", "state", "operator-state", "timers"];
    let ours = |(interface, version)| SERVED.contains(&interface) && crate::interfaces::is_served(version);
    crate::interfaces::split(import).is_some_and(ours) || wasi::serves(import)
}

impl bindings::types::Host for Guest {}
