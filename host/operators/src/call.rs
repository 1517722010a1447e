//! What every operator with a user function does around a call: time and seed before it, and after it what the call
//! counted, wrote and emitted, or nothing of it if the call failed.

use std::sync::atomic::AtomicU64;

use millstream_operator::{CallContext, FunctionError, OperatorContext, OperatorMetrics};
use millstream_state::{OperatorState, StateError, item_chunks, items_of};
use millstream_types::{Redistribution, State, StateForm, StateKind, StatePart, hash_key};

use crate::{
    kept::CALLS,
    subtask_state::{number, take_numbers, take_parts},
};

/// The calls of one operator subtask, in order.
pub struct Calls {
    ctx: OperatorContext,
    operator_state: OperatorState,
    /// Names the subtask in seeds.
    place: u64,
    made: u64,
}

impl Calls {
    /// The first call is still to come.
    pub fn new(ctx: OperatorContext) -> Self {
        let place = hash_key(ctx.name().as_bytes());
        Self { ctx, operator_state: OperatorState::default(), place, made: 0 }
    }

    /// Where the operator runs.
    pub fn ctx(&self) -> &OperatorContext {
        &self.ctx
    }

    /// The context of the next call, without keys.
    ///
    /// Its seed comes from the subtask and the number of calls before it, so that a replay draws the same.
    pub fn begin(&mut self) -> CallContext {
        self.made = self.made.wrapping_add(1);
        let seed = hash_key(&[self.place.to_le_bytes(), self.made.to_le_bytes()].concat());
        let operator_state = self.operator_state.clone();
        CallContext { operator_state, now: self.ctx.clock.now(), seed, ..CallContext::default() }
    }

    /// Applies what the call counted and wrote to the subtask's state if it was `ok`, and forgets it else. Keyed
    /// state is its owner's business.
    pub fn end<T>(
        &mut self,
        call: CallContext,
        result: Result<T, FunctionError>,
    ) -> Result<T, FunctionError> {
        let made = result?;
        self.operator_state = call.operator_state;
        call.counts.iter().for_each(|(name, by)| self.ctx.metrics.count(name, *by));
        call.gauges.iter().for_each(|(name, value)| self.ctx.metrics.gauge(name, *value));
        Ok(made)
    }

    /// The state of the subtask, as parts of a snapshot.
    pub(crate) fn snapshot(&self) -> Vec<StatePart> {
        let part = |state: &State| {
            let items = self.operator_state.read(&state.name)?;
            let (name, columns) = (state.name.clone(), state.columns.clone());
            let chunks = item_chunks(&columns, items);
            Some(StatePart {
                name,
                form: form_of(state),
                version: state.version,
                columns,
                base: None,
                chunks,
                files: None,
            })
        };
        let declared = self.ctx.states.iter().filter(|s| s.kind == StateKind::Operator);
        declared.filter_map(part).chain([number(CALLS, self.made as i64)]).collect()
    }

    /// Takes those parts that are its own out of a snapshot.
    pub(crate) fn restore(&mut self, parts: &mut Vec<StatePart>) -> Result<(), StateError> {
        self.made = take_numbers(CALLS, parts)?.into_iter().max().unwrap_or(0) as u64;
        for state in self.ctx.states.clone().iter().filter(|s| s.kind == StateKind::Operator) {
            let found = take_parts(&state.name, form_of(state), parts);
            let chunks: Vec<_> = found.into_iter().flat_map(|part| part.chunks).collect();
            if !chunks.is_empty() {
                self.operator_state.replace(&state.name, items_of(&state.columns, &chunks)?);
            }
        }
        Ok(())
    }

    /// Adds to one of the operator's figures.
    pub(crate) fn add(&self, figure: impl Fn(&OperatorMetrics) -> &AtomicU64, by: usize) {
        if by > 0 {
            OperatorMetrics::add(figure(&self.ctx.metrics), by as u64);
        }
    }
}

fn form_of(state: &State) -> StateForm {
    match state.redistribution {
        Redistribution::Split => StateForm::Items,
        Redistribution::Union => StateForm::UnionItems,
    }
}

#[cfg(test)]
mod tests {
    use millstream_operator::MetricValue;
    use millstream_types::Columns;

    use super::*;
    use crate::test_support::context;

    fn refused() -> FunctionError {
        FunctionError::Refused { function: "f".into(), message: "no".into() }
    }

    fn call(calls: &mut Calls, result: Result<(), FunctionError>) {
        let mut call = calls.begin();
        call.counts.push(("seen".into(), 2));
        call.gauges.push(("level".into(), 0.5));
        call.operator_state.replace("items", Columns::new(1, Vec::new()));
        let _ = calls.end(call, result);
    }

    #[test]
    fn a_failed_call_leaves_nothing_behind() {
        let mut calls = Calls::new(context("op"));
        call(&mut calls, Err(refused()));
        assert!(calls.ctx().metrics.user().is_empty());
        assert!(calls.begin().operator_state.read("items").is_none());
    }

    #[test]
    fn a_good_call_counts_and_writes() {
        let mut calls = Calls::new(context("op"));
        call(&mut calls, Ok(()));
        call(&mut calls, Ok(()));
        let user = calls.ctx().metrics.user();
        assert_eq!(user["seen"], MetricValue::Counter(4));
        assert_eq!(user["level"], MetricValue::Gauge(0.5));
        assert!(calls.begin().operator_state.read("items").is_some());
    }

    #[test]
    fn seeds_differ_by_call_and_subtask_and_repeat_in_a_replay() {
        let seeds = |name| {
            let mut calls = Calls::new(context(name));
            [calls.begin().seed, calls.begin().seed]
        };
        assert_eq!(seeds("a"), seeds("a"));
        let [first, second] = seeds("a");
        assert!(first != second && first != seeds("b")[0]);
    }
}
