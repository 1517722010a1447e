//! What a function made of a test's rows.

use super::rows::{Seen, check_columns};
use crate::column::{Batch, ColumnSpec};
use crate::function::{Origin, Outcome, Rejected};
use crate::manifest::FunctionSpec;

/// What a function emitted and refused.
#[derive(Debug)]
pub struct Results {
    function: String,
    ports: Vec<(String, Vec<ColumnSpec>)>,
    outputs: Vec<Emitted>,
    rejected: Vec<Rejected>,
}

#[derive(Debug)]
struct Emitted {
    port: u32,
    origin: Origin,
    batch: Batch,
}

impl Results {
    pub(super) fn new(spec: &FunctionSpec) -> Self {
        let ports = spec.outputs.iter().map(|port| (port.name.clone(), port.columns.clone())).collect();
        Self { function: spec.name.clone(), ports, outputs: Vec::new(), rejected: Vec::new() }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        self.rejected.extend(outcome.rejected);
        self.outputs.extend(outcome.outputs.into_iter().map(|output| Emitted {
            port: output.port,
            origin: output.origin,
            batch: Batch { rows: output.rows, columns: output.columns },
        }));
    }

    pub(super) fn append(&mut self, later: Results) {
        self.outputs.extend(later.outputs);
        self.rejected.extend(later.rejected);
    }

    /// Refused rows of a part of the test's rows, whose positions these are.
    pub(super) fn reject(&mut self, rejected: Vec<Rejected>, positions: &[usize]) {
        self.rejected.extend(
            rejected
                .into_iter()
                .map(|it| Rejected { row: positions[it.row as usize] as u32, reason: it.reason }),
        );
    }

    /// Rows of the main port.
    pub fn rows<T: Seen>(&self) -> Vec<T::Row<'_>> {
        self.of_port::<T>(0)
    }

    /// Rows of a side output.
    pub fn side<T: Seen>(&self, port: &str) -> Vec<T::Row<'_>> {
        match self.ports.iter().position(|(name, _)| name == port) {
            Some(position) => self.of_port::<T>(position),
            None => panic!("function `{}` has no output `{port}`", self.function),
        }
    }

    fn of_port<T: Seen>(&self, port: usize) -> Vec<T::Row<'_>> {
        let what = format!("output {port} of `{}`", self.function);
        let declared = self.ports.get(port).map(|(_, columns)| columns.as_slice()).unwrap_or_default();
        check_columns(&T::columns("value"), declared, &what);
        let emitted = self.outputs.iter().filter(|output| output.port as usize == port);
        emitted.flat_map(|output| read::<T>(&output.batch, &what)).collect()
    }

    /// For each row of the main port the row, timer, window or group that it comes from; none for one with an
    /// event time of its own.
    pub fn origins(&self) -> Vec<Option<usize>> {
        let main = self.outputs.iter().filter(|output| output.port == 0);
        main.flat_map(|output| match &output.origin {
            Origin::Each => (0..output.batch.rows).map(Some).collect::<Vec<_>>(),
            Origin::Picked(rows) => rows.iter().map(|&row| Some(row as usize)).collect(),
            Origin::Made(times) => times.iter().map(|_| None).collect(),
        })
        .collect()
    }

    /// Refused rows: position and reason.
    pub fn rejected(&self) -> Vec<(usize, &str)> {
        self.rejected.iter().map(|rejected| (rejected.row as usize, rejected.reason.as_str())).collect()
    }
}

fn read<'a, T: Seen>(batch: &'a Batch, what: &str) -> Vec<T::Row<'a>> {
    match T::reader(batch) {
        Ok(reader) => (0..batch.rows).map(|row| T::read(&reader, row)).collect(),
        Err(mismatch) => panic!("{what}: {mismatch}"),
    }
}
