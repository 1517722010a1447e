//! The boundary to guests: calls, columns in both directions, instances.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use millstream_operator::{CallContext, FunctionFactory, UserFunction};
use millstream_types::Columns;
use millstream_wasm::WasmFunctionFactory;

use super::{ROWS, Work};
use crate::{
    guest::map_of,
    support::{block_on, factory, place},
};

/// A call with one row of one number, which comes back.
pub(super) fn call() -> Box<dyn Work> {
    Box::new(Echo::new("int64", Arc::new(Int64Array::from(vec![1]))))
}

/// Batches of one column of 64-bit integers, there and back.
pub(super) fn numbers() -> Box<dyn Work> {
    Box::new(Echo::new("int64", Arc::new(Int64Array::from_iter_values(0..ROWS as i64))))
}

/// Batches of one column of text of 22 bytes a row, there and back.
pub(super) fn text() -> Box<dyn Work> {
    let text = (0..ROWS).map(|row| format!("text of a row {row:08}"));
    Box::new(Echo::new("utf8", Arc::new(StringViewArray::from_iter_values(text))))
}

/// Instances made, opened and given back.
pub(super) fn instance() -> Box<dyn Work> {
    Box::new(Instances { factory: factory(&map_of("int64")) })
}

/// A function that returns what it is given.
struct Echo {
    function: Box<dyn UserFunction>,
    input: Columns,
    call: CallContext,
}

impl Echo {
    fn new(data_type: &str, column: ArrayRef) -> Self {
        let function = factory(&map_of(data_type)).create(&place()).expect("a map function");
        let input = Columns::new(column.len(), vec![column]);
        Self { function, input, call: CallContext::default() }
    }
}

impl Work for Echo {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let outcome = block_on(self.function.map(&self.input, None, &mut self.call));
            let outcome = outcome.expect("an echo");
            assert_eq!(outcome.outputs[0].rows, self.input.rows);
        }
    }
}

struct Instances {
    factory: WasmFunctionFactory,
}

impl Work for Instances {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let mut function = self.factory.create(&place()).expect("a map function");
            block_on(function.open(&mut CallContext::default())).expect("it opens");
            block_on(function.close()).expect("it closes");
        }
    }
}
