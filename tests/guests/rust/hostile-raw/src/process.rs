//! Process functions that misuse state and timers.

use crate::Component;
use crate::bindings::exports::millstream::function::process_function::{Fired, Guest, KeyedBatch};
use crate::bindings::millstream::function::state::ValueState;
use crate::bindings::millstream::function::timers;
use crate::bindings::millstream::function::types::{Batch, Cells, Clock, Column, Outcome, Values};
use crate::fault::{self, Fault};

impl Guest for Component {
    fn open(function: String) -> Result<(), String> {
        match fault::open(&function)? {
            Fault::UnknownState => ValueState::open("not_declared").map(drop),
            _ => Ok(()),
        }
    }

    fn process(input: KeyedBatch) -> Result<Outcome, String> {
        let beyond = input.keys.rows;
        match fault::opened()? {
            Fault::UnknownKeyRead => drop(ValueState::open("count")?.read(&[beyond])),
            Fault::UnknownKeyWrite => ValueState::open("count")?.write(&[beyond], &cells(1)),
            Fault::ShortCells => ValueState::open("count")?.write(&[0, 0, 0], &cells(1)),
            Fault::UnknownKeyTimer => timers::set(Clock::Event, &[u32::MAX], &[0]),
            Fault::UnevenTimers => timers::set(Clock::Event, &[0], &[1, 2, 3]),
            _ => {}
        }
        Ok(Outcome { outputs: Vec::new(), rejected: Vec::new() })
    }

    fn on_timer(_timers: Fired) -> Result<Outcome, String> {
        Ok(Outcome { outputs: Vec::new(), rejected: Vec::new() })
    }

    fn close() {}
}

fn cells(rows: u32) -> Cells {
    let values = Values::Int64(vec![7; rows as usize]);
    let columns = vec![Column { validity: None, values, children: Vec::new() }];
    Cells { present: vec![0xff; (rows as usize).div_ceil(8)], values: Batch { rows, columns } }
}
