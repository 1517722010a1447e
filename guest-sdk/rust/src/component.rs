//! The component: exports of every synchronous interface over a module's list of functions.
//!
//! One instance is one open function. What the host calls out of turn, or for another kind, is refused.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::function::{
    AccumulateCall, Call, CallError, FinishCall, KeyedCall, MapCall, Module, Opened, TimerCall, WindowCall,
};
use crate::host::Cells;
use crate::host::wasm::panicked;

use self::bindings::exports::millstream::function as exports;
use self::bindings::millstream::function::types;
use self::convert::{
    accumulated_out, batch_in, batch_out, cells_in, cells_out, clock_in, outcome_out, windows_in,
};

pub(crate) mod convert;

#[doc(hidden)]
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    rust_2018_idioms,
    clippy::all,
    reason = "generated from the WIT package"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "module",
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "millstream::__private::bindings",
    });
}

/// The exports of a module.
pub struct Component<M>(PhantomData<M>);

thread_local! {
    static OPENED: RefCell<Option<Opened>> = const { RefCell::new(None) };
    /// The name of the open function.
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
}

fn open<M: Module>(function: &str, kind: &'static str) -> Result<(), String> {
    report_panics();
    let opened = M::open(function, kind)?;
    OPENED.set(Some(opened));
    NAME.set(function.to_owned());
    Ok(())
}

fn close() {
    if let Some(mut opened) = OPENED.take() {
        opened.hooks().close();
    }
}

/// A trap carries no text, so a panic hands its text to the host first.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let text = panic.payload_as_str().unwrap_or("a panic without text");
        panicked(&format!("{text}{}", place.unwrap_or_default()));
    }));
}

macro_rules! call {
    ($kind:ident, $name:literal, |$function:ident| $call:expr) => {
        OPENED.with_borrow_mut(|opened| match opened {
            Some(Opened::$kind($function)) => $call.map_err(|error: CallError| error.to_string()),
            Some(other) => Err(CallError::Kind { expected: $name, found: other.kind() }.to_string()),
            None => Err(CallError::Kind { expected: $name, found: "none" }.to_string()),
        })
    };
}

impl<M: Module> exports::manifest::Guest for Component<M> {
    fn describe() -> String {
        M::describe()
    }
}

impl<M: Module> exports::map_function::Guest for Component<M> {
    fn open(function: String) -> Result<(), String> {
        open::<M>(&function, "map")
    }

    fn apply(input: types::Batch, times: Option<Vec<i64>>) -> Result<types::Outcome, String> {
        call!(Map, "map", |function| function
            .apply(MapCall { rows: batch_in(input), times })
            .map(outcome_out))
    }

    fn close() {
        close();
    }
}

impl<M: Module> exports::process_function::Guest for Component<M> {
    fn open(function: String) -> Result<(), String> {
        open::<M>(&function, "process")
    }

    fn process(input: exports::process_function::KeyedBatch) -> Result<types::Outcome, String> {
        let call = KeyedCall {
            port: input.port,
            rows: batch_in(input.rows),
            times: input.times,
            keys: batch_in(input.keys),
            key_of_row: input.key_of_row,
            watermark: input.watermark,
        };
        call!(Process, "process", |function| function.process(call).map(outcome_out))
    }

    fn on_timer(timers: exports::process_function::Fired) -> Result<types::Outcome, String> {
        let call = TimerCall {
            clock: clock_in(timers.clock),
            keys: batch_in(timers.keys),
            times: timers.times,
            watermark: timers.watermark,
        };
        call!(Process, "process", |function| function.on_timer(call).map(outcome_out))
    }

    fn close() {
        close();
    }
}

impl<M: Module> exports::aggregate_function::Guest for Component<M> {
    fn open(function: String) -> Result<(), String> {
        open::<M>(&function, "aggregate")
    }

    fn accumulate(
        rows: types::Batch,
        times: Option<Vec<i64>>,
        group_of_row: Vec<u32>,
        accumulators: types::Cells,
    ) -> Result<exports::aggregate_function::Accumulated, String> {
        let accumulators = cells_in(accumulators);
        let call = AccumulateCall { rows: batch_in(rows), times, group_of_row, accumulators };
        call!(Aggregate, "aggregate", |function| function.accumulate(call).map(accumulated_out))
    }

    fn merge(into: types::Batch, other: types::Batch) -> Result<types::Batch, String> {
        call!(Aggregate, "aggregate", |function| function
            .merge(batch_in(into), batch_in(other))
            .map(batch_out))
    }

    fn finish(
        accumulators: types::Batch,
        keys: types::Batch,
        key_of_group: Vec<u32>,
        windows: Vec<types::Window>,
    ) -> Result<types::Outcome, String> {
        let (accumulators, keys) = (batch_in(accumulators), batch_in(keys));
        let call = FinishCall { accumulators, keys, key_of_group, windows: windows_in(windows) };
        call!(Aggregate, "aggregate", |function| function.finish(call).map(outcome_out))
    }

    fn close() {
        close();
    }
}

impl<M: Module> exports::window_function::Guest for Component<M> {
    fn open(function: String) -> Result<(), String> {
        open::<M>(&function, "window")
    }

    fn apply(
        rows: types::Batch,
        times: Option<Vec<i64>>,
        offsets: Vec<u32>,
        keys: types::Batch,
        key_of_window: Vec<u32>,
        windows: Vec<types::Window>,
    ) -> Result<types::Outcome, String> {
        let (rows, keys, windows) = (batch_in(rows), batch_in(keys), windows_in(windows));
        let call = WindowCall { rows, times, offsets, keys, key_of_window, windows };
        call!(Window, "window", |function| function.apply(call).map(outcome_out))
    }

    fn close() {
        close();
    }
}

fn hook(call: impl FnOnce(&mut Opened) -> Call) -> Result<types::Outcome, String> {
    OPENED.with_borrow_mut(|opened| match opened {
        Some(opened) => call(opened).map(outcome_out).map_err(|error| error.to_string()),
        None => Err(CallError::Kind { expected: "any", found: "none" }.to_string()),
    })
}

impl<M: Module> exports::lifecycle::Guest for Component<M> {
    fn before_barrier() -> Result<types::Outcome, String> {
        hook(|opened| opened.hooks().before_barrier())
    }

    fn end_of_input() -> Result<types::Outcome, String> {
        hook(|opened| opened.hooks().end_of_input())
    }
}

impl<M: Module> exports::migration::Guest for Component<M> {
    fn migrate(state: String, stored_version: u32, cells: types::Cells) -> Result<types::Cells, String> {
        let migration = NAME.with_borrow(|function| M::migration(function, &state, stored_version))?;
        let Cells { present, values } = cells_in(cells);
        let values = (migration.rows)(&values)
            .map_err(|mismatch| format!("state `{state}` of version {stored_version}: {mismatch}"))?;
        Ok(cells_out(Cells { present, values }))
    }
}
