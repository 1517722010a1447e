//! `state`: keyed state, read and written for many keys at once.
//!
//! A handle's number is the position of its state in the manifest, so handles cost nothing and none can be forged
//! that means anything else. What a guest writes is checked against the manifest here and reaches the state as
//! Arrow columns.

use std::sync::Arc;

use millstream_state::{KeyedContext, StateId};
use millstream_types::{Function, Runs, State, StateKind};
use wasmtime::component::Resource;

use super::{Guest, Moment};
use crate::{
    bindings::{
        state::{
            self, BroadcastState, HostBroadcastState, HostListState, HostMapState, HostValueState, ListState,
            MapState, ValueState,
        },
        types as wit,
    },
    boundary::{
        give,
        lift::{self, Problem},
    },
    stop::Stop,
};

impl state::Host for Guest {}

impl HostValueState for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<ValueState>, String>> {
        Ok(self.declared(StateKind::Value, &name).map(Resource::new_own))
    }

    fn read(&mut self, state: Resource<ValueState>, keys: Vec<u32>) -> wasmtime::Result<wit::Cells> {
        let id = self.state_id(state.rep())?;
        let cells = self.keyed()?.read_values(id, &keys).map_err(Stop::from)?;
        Ok(give::cells(cells))
    }

    fn write(
        &mut self,
        state: Resource<ValueState>,
        keys: Vec<u32>,
        cells: wit::Cells,
    ) -> wasmtime::Result<()> {
        let cells = self.taken_cells(state.rep(), "value-state.write", keys.len(), cells)?;
        let id = self.state_id(state.rep())?;
        Ok(self.keyed()?.write_values(id, &keys, cells).map_err(Stop::from)?)
    }

    fn drop(&mut self, _state: Resource<ValueState>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl HostListState for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<ListState>, String>> {
        Ok(self.declared(StateKind::List, &name).map(Resource::new_own))
    }

    fn read(&mut self, state: Resource<ListState>, keys: Vec<u32>) -> wasmtime::Result<wit::Runs> {
        let id = self.state_id(state.rep())?;
        let runs = self.keyed()?.read_lists(id, &keys).map_err(Stop::from)?;
        Ok(wit::Runs { offsets: runs.offsets, items: give::batch(runs.items) })
    }

    fn append(
        &mut self,
        state: Resource<ListState>,
        keys: Vec<u32>,
        items: wit::Runs,
    ) -> wasmtime::Result<()> {
        let runs = self.taken_runs(state.rep(), keys.len(), items)?;
        let id = self.state_id(state.rep())?;
        Ok(self.keyed()?.append_lists(id, &keys, runs).map_err(Stop::from)?)
    }

    fn clear(&mut self, state: Resource<ListState>, keys: Vec<u32>) -> wasmtime::Result<()> {
        let id = self.state_id(state.rep())?;
        Ok(self.keyed()?.clear_lists(id, &keys).map_err(Stop::from)?)
    }

    fn drop(&mut self, _state: Resource<ListState>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl HostMapState for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<MapState>, String>> {
        Ok(self.declared(StateKind::Map, &name).map(Resource::new_own))
    }

    fn read(
        &mut self,
        state: Resource<MapState>,
        keys: Vec<u32>,
        map_keys: wit::VarValues,
    ) -> wasmtime::Result<wit::Cells> {
        self.checked_map_keys("map-state.read", keys.len(), &map_keys)?;
        let id = self.state_id(state.rep())?;
        let cells =
            self.keyed()?.read_entries(id, &keys, &map_keys.offsets, &map_keys.bytes).map_err(Stop::from)?;
        Ok(give::cells(cells))
    }

    fn write(
        &mut self,
        state: Resource<MapState>,
        keys: Vec<u32>,
        map_keys: wit::VarValues,
        cells: wit::Cells,
    ) -> wasmtime::Result<()> {
        self.checked_map_keys("map-state.write", keys.len(), &map_keys)?;
        let cells = self.taken_cells(state.rep(), "map-state.write", keys.len(), cells)?;
        let id = self.state_id(state.rep())?;
        let keyed = self.keyed()?;
        Ok(keyed.write_entries(id, &keys, &map_keys.offsets, &map_keys.bytes, cells).map_err(Stop::from)?)
    }

    fn scan(
        &mut self,
        state: Resource<MapState>,
        keys: Vec<u32>,
        start: Option<Vec<u8>>,
        limit: u32,
    ) -> wasmtime::Result<wit::Entries> {
        let id = self.state_id(state.rep())?;
        let found = self.keyed()?.scan_entries(id, &keys, start.as_deref(), limit).map_err(Stop::from)?;
        Ok(wit::Entries {
            offsets: found.offsets,
            map_keys: wit::VarValues { offsets: found.key_offsets, bytes: found.key_bytes },
            values: give::batch(found.values),
        })
    }

    fn clear(&mut self, state: Resource<MapState>, keys: Vec<u32>) -> wasmtime::Result<()> {
        let id = self.state_id(state.rep())?;
        Ok(self.keyed()?.clear_maps(id, &keys).map_err(Stop::from)?)
    }

    fn drop(&mut self, _state: Resource<MapState>) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// Broadcast state cannot be opened in this version, so that no other call can be made.
impl HostBroadcastState for Guest {
    fn open(&mut self, _name: String) -> wasmtime::Result<Result<Resource<BroadcastState>, String>> {
        Ok(Err(NO_BROADCAST.to_owned()))
    }

    fn read(
        &mut self,
        _state: Resource<BroadcastState>,
        _map_keys: wit::VarValues,
    ) -> wasmtime::Result<wit::Cells> {
        Err(Stop::Misuse(NO_BROADCAST.to_owned()).into())
    }

    fn write(
        &mut self,
        _state: Resource<BroadcastState>,
        _map_keys: wit::VarValues,
        _cells: wit::Cells,
    ) -> wasmtime::Result<Result<(), String>> {
        Err(Stop::Misuse(NO_BROADCAST.to_owned()).into())
    }

    fn scan(
        &mut self,
        _state: Resource<BroadcastState>,
        _start: Option<Vec<u8>>,
        _limit: u32,
    ) -> wasmtime::Result<wit::Entries> {
        Err(Stop::Misuse(NO_BROADCAST.to_owned()).into())
    }

    fn drop(&mut self, _state: Resource<BroadcastState>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl Guest {
    /// The number of the handle for a declared state, or what is declared instead.
    pub(super) fn declared(&self, kind: StateKind, name: &str) -> Result<u32, String> {
        let states = self.function.as_ref().map_or(&[][..], |f| &f.states);
        let found = states.iter().position(|s| s.kind == kind && s.name == name);
        found.map(|at| at as u32).ok_or_else(|| {
            let listed =
                states.iter().map(|s| format!("{} `{}`", kind_name(s.kind), s.name)).collect::<Vec<_>>();
            let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
            format!("no {} state `{name}` in the manifest: declared are {listed}", kind_name(kind))
        })
    }

    /// What the manifest says of the state of a handle.
    pub(super) fn state_declaration(&self, handle: u32) -> Result<Declared, Stop> {
        let function = self.function.as_ref().filter(|f| (handle as usize) < f.states.len());
        let function =
            function.ok_or_else(|| Stop::Misuse(format!("state handle {handle} was never given out")))?;
        Ok(Declared { function: function.clone(), at: handle as usize })
    }

    /// Where the state of a handle is kept; looked up with the first use.
    fn state_id(&mut self, handle: u32) -> Result<StateId, Stop> {
        if let Some(Some(id)) = self.states.get(handle as usize) {
            return Ok(*id);
        }
        let state = self.state_declaration(handle)?;
        let id = self.keyed()?.state(state.kind, &state.name)?;
        self.states[handle as usize] = Some(id);
        Ok(id)
    }

    /// The state of the keys of the current call.
    pub(super) fn keyed(&mut self) -> Result<&mut KeyedContext, Stop> {
        let no_call = "keyed state and timers belong to the keys of a call: `open` and `close` have none";
        let no_keys = "the function has no keys here: keyed state and timers need `key` in the job file";
        if self.moment != Moment::Call {
            return Err(Stop::Misuse(no_call.to_owned()));
        }
        self.call.keyed.as_mut().ok_or_else(|| Stop::Misuse(no_keys.to_owned()))
    }

    /// Refuses what needs the subtask's state while there is none.
    pub(super) fn in_subtask(&self, call: &str) -> Result<(), Stop> {
        match self.moment {
            Moment::Idle => {
                Err(Stop::Misuse(format!("{call}: a module that is described has no operator state")))
            }
            Moment::Opening | Moment::Call => Ok(()),
        }
    }

    fn taken_cells(
        &mut self,
        handle: u32,
        call: &'static str,
        keys: usize,
        cells: wit::Cells,
    ) -> Result<millstream_types::Cells, Stop> {
        self.take_bytes(keys * size_of::<u32>() + cells.present.len() + give::size(&cells.values))?;
        let state = self.state_declaration(handle)?;
        let of = StateName(&state);
        lift::cells(cells, &state.columns, keys, &of).map_err(|problem| Stop::Passed { call, problem })
    }

    fn taken_runs(&mut self, handle: u32, keys: usize, runs: wit::Runs) -> Result<Runs, Stop> {
        let call = "list-state.append";
        self.take_bytes((keys + runs.offsets.len()) * size_of::<u32>() + give::size(&runs.items))?;
        let state = self.state_declaration(handle)?;
        let rows = runs.items.rows as usize;
        let lifted = lift::offsets(&runs.offsets, keys, rows)
            .and_then(|()| lift::batch(runs.items, &state.columns, rows, &StateName(&state)));
        let items = lifted.map_err(|problem| Stop::Passed { call, problem })?;
        Ok(Runs { offsets: runs.offsets, items })
    }

    fn checked_map_keys(
        &mut self,
        call: &'static str,
        keys: usize,
        map_keys: &wit::VarValues,
    ) -> Result<(), Stop> {
        self.take_bytes((keys + map_keys.offsets.len()) * size_of::<u32>() + map_keys.bytes.len())?;
        lift::offsets(&map_keys.offsets, keys, map_keys.bytes.len()).map_err(|Problem(problem)| {
            Stop::Passed { call, problem: Problem(format!("as map keys {problem}")) }
        })
    }
}

/// A state of the manifest.
pub(super) struct Declared {
    function: Arc<Function>,
    at: usize,
}

impl std::ops::Deref for Declared {
    type Target = State;

    fn deref(&self) -> &State {
        &self.function.states[self.at]
    }
}

/// How messages name a state.
struct StateName<'a>(&'a State);

impl std::fmt::Display for StateName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} state `{}`", kind_name(self.0.kind), self.0.name)
    }
}

fn kind_name(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Value => "value",
        StateKind::List => "list",
        StateKind::Map => "map",
        StateKind::Broadcast => "broadcast",
        StateKind::Operator => "operator",
    }
}

const NO_BROADCAST: &str = "broadcast state is not served by this version of the host";
