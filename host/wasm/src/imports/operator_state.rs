//! `operator-state`: the items of a subtask.

use millstream_types::{Columns, StateKind};
use wasmtime::component::Resource;

use super::Guest;
use crate::{
    bindings::{
        operator_state::{self, Items},
        types as wit,
    },
    boundary::{give, lift},
    stop::Stop,
};

impl operator_state::Host for Guest {}

impl operator_state::HostItems for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<Items>, String>> {
        Ok(self.declared(StateKind::Operator, &name).map(Resource::new_own))
    }

    fn read(&mut self, items: Resource<Items>) -> wasmtime::Result<wit::Batch> {
        let state = self.state_declaration(items.rep())?;
        self.in_subtask("items.read")?;
        let items = self.call.operator_state.read(&state.name);
        let none = || {
            Columns::new(
                0,
                state.columns.iter().map(|c| arrow_array::new_empty_array(&c.data_type.to_arrow())).collect(),
            )
        };
        Ok(give::batch(items.cloned().unwrap_or_else(none)))
    }

    fn replace(&mut self, items: Resource<Items>, with: wit::Batch) -> wasmtime::Result<()> {
        let state = self.state_declaration(items.rep())?;
        self.in_subtask("items.replace")?;
        self.take_bytes(give::size(&with))?;
        let rows = with.rows as usize;
        let of = format!("operator state `{}`", state.name);
        let items = lift::batch(with, &state.columns, rows, &of)
            .map_err(|problem| Stop::Passed { call: "items.replace", problem })?;
        self.call.operator_state.replace(&state.name, items);
        Ok(())
    }

    fn drop(&mut self, _items: Resource<Items>) -> wasmtime::Result<()> {
        Ok(())
    }
}
