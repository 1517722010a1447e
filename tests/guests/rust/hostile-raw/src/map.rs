//! Map functions whose outcome breaks the rules.

use crate::Component;
use crate::bindings::exports::millstream::function::map_function::Guest;
use crate::bindings::millstream::function::types::{
    Batch, Column, Origin, Outcome, Output, Rejected, Values, VarValues,
};
use crate::fault::{self, Fault};

impl Guest for Component {
    fn open(function: String) -> Result<(), String> {
        fault::open(&function).map(drop)
    }

    fn apply(input: Batch, _times: Option<Vec<i64>>) -> Result<Outcome, String> {
        let fault = fault::opened()?;
        if let Fault::LongError = fault {
            return Err("error ".repeat((64 << 20) / 6));
        }
        let rejected = match fault {
            Fault::RejectedOutOfRange => {
                vec![Rejected { row: input.rows, reason: "no such row".to_owned(), retryable: false }]
            }
            _ => Vec::new(),
        };
        Ok(Outcome { outputs: vec![output(fault, input.rows)], rejected })
    }

    fn close() {}
}

fn output(fault: Fault, rows: u32) -> Output {
    let port = if let Fault::UnknownPort = fault { 7 } else { 0 };
    let (made, origin) = match fault {
        Fault::OriginOutOfRange => (rows, Origin::Picked((1..=rows).collect())),
        Fault::ShortOrigins => (rows, Origin::Picked((1..rows).collect())),
        Fault::EachOfOthers => (rows + 1, Origin::Each),
        Fault::ManyRows => (u32::MAX, Origin::Each),
        _ => (rows, Origin::Each),
    };
    Output { port, rows: made, origin, columns: columns(fault, made) }
}

fn columns(fault: Fault, rows: u32) -> Vec<Column> {
    let offsets = || (0..=rows).collect::<Vec<u32>>();
    let text =
        |offsets: Vec<u32>, byte: u8| Values::Var(VarValues { offsets, bytes: vec![byte; rows as usize] });
    let numbers = |rows: u32| Values::Int64(vec![7; rows as usize]);
    let values = match fault {
        Fault::ShortColumn => numbers(rows - 1),
        Fault::FallingOffsets => text(offsets().into_iter().rev().collect(), b'x'),
        Fault::OffsetsBehindBytes => text(offsets().into_iter().map(|offset| offset + 1000).collect(), b'x'),
        Fault::MissingOffset => text((0..rows).collect(), b'x'),
        Fault::InvalidText => text(offsets(), 0xff),
        Fault::WrongLayout => Values::Float64(vec![7.0; rows as usize]),
        Fault::NoColumn | Fault::ManyRows => return Vec::new(),
        Fault::ExtraColumn => return vec![column(None, numbers(rows)), column(None, numbers(rows))],
        Fault::Huge => return huge(),
        _ => numbers(rows),
    };
    let validity = match fault {
        Fault::ShortValidity => Some(Vec::new()),
        Fault::UndeclaredNull => Some(vec![0; (rows as usize).div_ceil(8)]),
        _ => None,
    };
    vec![column(validity, values)]
}

fn column(validity: Option<Vec<u8>>, values: Values) -> Column {
    Column { validity, values, children: Vec::new() }
}

/// 2,048 columns of a MiB that all are the same MiB: a guest with little memory hands over a lot.
#[expect(
    unsafe_code,
    reason = "columns that share memory are the point; the call never returns to free them"
)]
fn huge() -> Vec<Column> {
    const BYTES: usize = 1 << 20;
    let shared: &'static mut [u8] = vec![1; BYTES].leak();
    let bits = || {
        // SAFETY: none. The vectors alias, and freeing two of them is undefined. The host has to stop the call
        // while it copies them out, which is before this module would free any.
        unsafe { Vec::from_raw_parts(shared.as_ptr().cast_mut(), BYTES, BYTES) }
    };
    (0..2048).map(|_| column(None, Values::Bits(bits()))).collect()
}
