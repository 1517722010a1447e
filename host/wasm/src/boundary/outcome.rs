//! What a call made and refused, checked against the function's manifest and the call's input.

use std::fmt;

use millstream_operator::{FunctionOutput, Origin, Outcome, Rejected};
use millstream_types::{Carry, Function, Output};

use super::lift::{self, Problem};
use crate::bindings::types as wit;

/// Rows that the outputs of one call may have together. More would be a mistake or an attack: outputs without columns
/// cost the guest nothing, so the bound on bytes does not hold them.
pub(crate) const MAX_ROWS: usize = 1 << 26;

/// What the rows of a call came from: bounds what origins and rejected rows may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inputs {
    /// How many.
    pub(crate) count: usize,
    /// `rows`, `timers`, `windows` or `groups`.
    pub(crate) what: &'static str,
}

/// The outcome of a call of `function`.
pub(crate) fn outcome(found: wit::Outcome, function: &Function, inputs: Inputs) -> Result<Outcome, Problem> {
    let rows: usize = found.outputs.iter().map(|o| o.rows as usize).sum();
    if rows > MAX_ROWS {
        return Err(Problem(format!(
            "the outputs have {rows} rows: at most {MAX_ROWS} are taken from one call"
        )));
    }
    let outputs = found.outputs.into_iter().map(|o| output(o, function, inputs)).collect::<Result<_, _>>()?;
    Ok(Outcome { outputs, rejected: rejected(found.rejected, inputs)? })
}

/// Rows that a call refuses: existing ones, each once, in order.
pub(crate) fn rejected(found: Vec<wit::Rejected>, inputs: Inputs) -> Result<Vec<Rejected>, Problem> {
    let Inputs { count, what } = inputs;
    if let Some(row) = found.iter().find(|r| r.row as usize >= count) {
        return Err(Problem(format!("it rejects row {}: the call has {count} {what}", row.row)));
    }
    if let Some(pair) = found.windows(2).find(|pair| pair[0].row >= pair[1].row) {
        return Err(Problem(format!(
            "it rejects row {} after row {}: expected ascending rows",
            pair[1].row, pair[0].row
        )));
    }
    Ok(found.into_iter().map(|r| Rejected { row: r.row, reason: r.reason, retryable: r.retryable }).collect())
}

fn output(found: wit::Output, function: &Function, inputs: Inputs) -> Result<FunctionOutput, Problem> {
    let port = found.port as usize;
    let Some(declared) = function.outputs.get(port) else {
        let ports = function.outputs.len();
        return Err(Problem(format!(
            "an output is for port {port}: the manifest declares {ports} output ports"
        )));
    };
    let of = PortName { port, declared };
    let rows = found.rows as usize;
    let origin = origin(found.origin, rows, declared, inputs)
        .map_err(|e| Problem(format!("the origin of {of} {e}")))?;
    let columns = lift::columns(found.columns, &declared.columns, rows, &of)?;
    Ok(FunctionOutput { port, rows, origin, columns })
}

fn origin(found: wit::Origin, rows: usize, declared: &Output, inputs: Inputs) -> Result<Origin, Problem> {
    let Inputs { count, what } = inputs;
    match found {
        wit::Origin::Each if rows != count => {
            Err(Problem(format!("is `each` for {rows} rows: the call has {count} {what}")))
        }
        wit::Origin::Each => Ok(Origin::Each),
        wit::Origin::Picked(from) => {
            if from.len() != rows {
                return Err(Problem(format!("names {} {what} for {rows} rows", from.len())));
            }
            match from.iter().max() {
                Some(&highest) if highest as usize >= count => {
                    Err(Problem(format!("names number {highest}: the call has {count} {what}")))
                }
                _ => Ok(Origin::Picked(from)),
            }
        }
        wit::Origin::Made(_) if declared.carry == Carry::Extend => Err(Problem(
            "is `made`: rows of a port with carry `extend` have to come from a row of the input".to_owned(),
        )),
        wit::Origin::Made(times) if times.len() != rows => {
            Err(Problem(format!("has {} times for {rows} rows", times.len())))
        }
        wit::Origin::Made(times) => Ok(Origin::Made(times)),
    }
}

/// How messages name an output port.
struct PortName<'a> {
    port: usize,
    declared: &'a Output,
}

impl fmt::Display for PortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output port {} (`{}`)", self.port, self.declared.name)
    }
}
