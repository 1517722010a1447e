//! User functions written as closures: what stands behind the trait where no sandbox does.

use async_trait::async_trait;
use millstream_operator::{
    Accumulated, CallContext, Fired, FunctionError, KeyedInput, Outcome, UserFunction,
};
use millstream_types::{Cells, Columns, Window};

type Made<T> = Result<T, FunctionError>;
type Map = dyn FnMut(&Columns, Option<&[i64]>, &mut CallContext) -> Made<Outcome>;
type Process = dyn FnMut(&KeyedInput<'_>, &mut CallContext) -> Made<Outcome>;
type OnTimer = dyn FnMut(&Fired<'_>, &mut CallContext) -> Made<Outcome>;
type Accumulate = dyn FnMut(&Columns, Option<&[i64]>, &[u32], &Cells) -> Made<Accumulated>;
type Merge = dyn FnMut(&Columns, &Columns) -> Made<Columns>;
type Finish = dyn FnMut(&Columns, &Columns, &[u32], &[Window]) -> Made<Outcome>;
type Apply = dyn FnMut(&Columns, Option<&[i64]>, &[u32], &Columns, &[u32], &[Window]) -> Made<Outcome>;
type Lifecycle = dyn FnMut(&mut CallContext) -> Made<Outcome>;

/// A user function whose calls are closures; one without a closure refuses the call.
#[derive(Default)]
pub(crate) struct Closures {
    map: Option<Box<Map>>,
    process: Option<Box<Process>>,
    on_timer: Option<Box<OnTimer>>,
    accumulate: Option<Box<Accumulate>>,
    merge: Option<Box<Merge>>,
    finish: Option<Box<Finish>>,
    apply: Option<Box<Apply>>,
    before_barrier: Option<Box<Lifecycle>>,
    end_of_input: Option<Box<Lifecycle>>,
}

impl Closures {
    pub(crate) fn map(
        mut self,
        call: impl FnMut(&Columns, Option<&[i64]>, &mut CallContext) -> Made<Outcome> + 'static,
    ) -> Self {
        self.map = Some(Box::new(call));
        self
    }

    pub(crate) fn process(
        mut self,
        call: impl FnMut(&KeyedInput<'_>, &mut CallContext) -> Made<Outcome> + 'static,
    ) -> Self {
        self.process = Some(Box::new(call));
        self
    }

    pub(crate) fn on_timer(
        mut self,
        call: impl FnMut(&Fired<'_>, &mut CallContext) -> Made<Outcome> + 'static,
    ) -> Self {
        self.on_timer = Some(Box::new(call));
        self
    }

    pub(crate) fn accumulate(
        mut self,
        call: impl FnMut(&Columns, Option<&[i64]>, &[u32], &Cells) -> Made<Accumulated> + 'static,
    ) -> Self {
        self.accumulate = Some(Box::new(call));
        self
    }

    pub(crate) fn merge(mut self, call: impl FnMut(&Columns, &Columns) -> Made<Columns> + 'static) -> Self {
        self.merge = Some(Box::new(call));
        self
    }

    pub(crate) fn finish(
        mut self,
        call: impl FnMut(&Columns, &Columns, &[u32], &[Window]) -> Made<Outcome> + 'static,
    ) -> Self {
        self.finish = Some(Box::new(call));
        self
    }

    pub(crate) fn apply(
        mut self,
        call: impl FnMut(&Columns, Option<&[i64]>, &[u32], &Columns, &[u32], &[Window]) -> Made<Outcome> + 'static,
    ) -> Self {
        self.apply = Some(Box::new(call));
        self
    }

    pub(crate) fn before_barrier(
        mut self,
        call: impl FnMut(&mut CallContext) -> Made<Outcome> + 'static,
    ) -> Self {
        self.before_barrier = Some(Box::new(call));
        self
    }

    pub(crate) fn end_of_input(
        mut self,
        call: impl FnMut(&mut CallContext) -> Made<Outcome> + 'static,
    ) -> Self {
        self.end_of_input = Some(Box::new(call));
        self
    }
}

fn given<'a, F: ?Sized>(call: &'a mut Option<Box<F>>, name: &'static str) -> Made<&'a mut Box<F>> {
    let refused = || FunctionError::Refused { function: "closures".into(), message: format!("no `{name}`") };
    call.as_mut().ok_or_else(refused)
}

#[async_trait(?Send)]
impl UserFunction for Closures {
    async fn open(&mut self, _call: &mut CallContext) -> Made<()> {
        Ok(())
    }

    async fn map(&mut self, input: &Columns, times: Option<&[i64]>, call: &mut CallContext) -> Made<Outcome> {
        given(&mut self.map, "map")?(input, times, call)
    }

    async fn process(&mut self, input: &KeyedInput<'_>, call: &mut CallContext) -> Made<Outcome> {
        given(&mut self.process, "process")?(input, call)
    }

    async fn on_timer(&mut self, fired: &Fired<'_>, call: &mut CallContext) -> Made<Outcome> {
        given(&mut self.on_timer, "on-timer")?(fired, call)
    }

    async fn accumulate(
        &mut self,
        rows: &Columns,
        times: Option<&[i64]>,
        group_of_row: &[u32],
        accumulators: &Cells,
        _call: &mut CallContext,
    ) -> Made<Accumulated> {
        given(&mut self.accumulate, "accumulate")?(rows, times, group_of_row, accumulators)
    }

    async fn merge(&mut self, into: &Columns, other: &Columns, _call: &mut CallContext) -> Made<Columns> {
        given(&mut self.merge, "merge")?(into, other)
    }

    async fn finish(
        &mut self,
        accumulators: &Columns,
        keys: &Columns,
        key_of_group: &[u32],
        windows: &[Window],
        _call: &mut CallContext,
    ) -> Made<Outcome> {
        given(&mut self.finish, "finish")?(accumulators, keys, key_of_group, windows)
    }

    async fn apply(
        &mut self,
        rows: &Columns,
        times: Option<&[i64]>,
        offsets: &[u32],
        keys: &Columns,
        key_of_window: &[u32],
        windows: &[Window],
        _call: &mut CallContext,
    ) -> Made<Outcome> {
        given(&mut self.apply, "apply")?(rows, times, offsets, keys, key_of_window, windows)
    }

    async fn before_barrier(&mut self, call: &mut CallContext) -> Made<Outcome> {
        given(&mut self.before_barrier, "before-barrier")?(call)
    }

    async fn end_of_input(&mut self, call: &mut CallContext) -> Made<Outcome> {
        given(&mut self.end_of_input, "end-of-input")?(call)
    }

    async fn close(&mut self) -> Made<()> {
        Ok(())
    }
}
