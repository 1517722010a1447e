//! What a call returns, and the collectors that gather it.

use crate::column::Column;
use crate::reject::{Rejected, Rejections};
use crate::row::Output;
use crate::time::Timestamp;

/// Where output rows come from: what gives them their event time, key and carried columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Row i from the call's row (timer, window, group) i.
    Each,
    /// Row i from the call's row `picked[i]`.
    Picked(Vec<u32>),
    /// From no row: their own event times.
    Made(Vec<i64>),
}

/// Rows for one output port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortOutput {
    /// Position of the port in the manifest.
    pub port: u32,
    /// Number of rows.
    pub rows: usize,
    /// Where they come from.
    pub origin: Origin,
    /// The declared columns.
    pub columns: Vec<Column>,
}

/// What a call returns: output, in order, and refused rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Emitted in this order.
    pub outputs: Vec<PortOutput>,
    /// Refused rows.
    pub rejected: Vec<Rejected>,
}

impl Outcome {
    /// One row for each row of the call, on the main port.
    #[doc(hidden)]
    pub fn each(rows: usize, columns: Vec<Column>) -> Self {
        let outputs = match rows {
            0 => Vec::new(),
            _ => vec![PortOutput { port: 0, rows, origin: Origin::Each, columns }],
        };
        Self { outputs, rejected: Vec::new() }
    }

    /// Takes over what a collector gathered; `rows` is the number of rows of the call.
    #[doc(hidden)]
    pub fn add<T: Output>(&mut self, collector: Collector<T>, rows: usize) {
        self.outputs.extend(collector.finish(rows));
    }

    /// Takes over the refused rows.
    #[doc(hidden)]
    pub fn reject(&mut self, rejections: Rejections) {
        self.rejected.extend(rejections.finish());
    }
}

/// Takes rows of one output port. A function gets one for each port that it names as an argument.
pub struct Collector<T: Output> {
    port: u32,
    origin: u32,
    builder: T::Builder,
    gathered: Origin,
    done: Vec<PortOutput>,
}

impl<T: Output> Collector<T> {
    /// An empty collector for a port, with room for so many rows.
    #[doc(hidden)]
    pub fn new(port: u32, rows: usize) -> Self {
        let gathered = Origin::Picked(Vec::with_capacity(rows));
        Self { port, origin: 0, builder: T::builder(rows), gathered, done: Vec::new() }
    }

    /// Says which row of the call the next emitted rows come from.
    #[doc(hidden)]
    #[inline(always)]
    pub fn at(&mut self, row: usize) {
        self.origin = row as u32;
    }

    /// Emits a row. It has the event time of the row, timer or window being handled.
    #[inline]
    pub fn emit<U: Output<Builder = T::Builder>>(&mut self, row: U) {
        if let Origin::Picked(rows) = &mut self.gathered {
            rows.push(self.origin);
        } else {
            self.turn(Origin::Picked(vec![self.origin]));
        }
        row.append_to(&mut self.builder);
    }

    /// Emits a row with an event time of its own. Only for a port that replaces, not one that carries columns.
    pub fn emit_at<U: Output<Builder = T::Builder>>(&mut self, time: Timestamp, row: U) {
        if let Origin::Made(times) = &mut self.gathered {
            times.push(time.0);
        } else {
            self.turn(Origin::Made(vec![time.0]));
        }
        row.append_to(&mut self.builder);
    }

    /// The next row has another kind of origin: what was gathered before it is an output of its own.
    #[cold]
    fn turn(&mut self, next: Origin) {
        let origin = std::mem::replace(&mut self.gathered, next);
        let builder = std::mem::replace(&mut self.builder, T::builder(0));
        self.done.extend(output::<T>(self.port, origin.gathered(), origin, builder));
    }

    fn finish(self, call_rows: usize) -> Vec<PortOutput> {
        let mut done = self.done;
        let rows = self.gathered.gathered();
        done.extend(output::<T>(self.port, rows, self.gathered.simplified(call_rows), self.builder));
        done
    }
}

fn output<T: Output>(port: u32, rows: usize, origin: Origin, builder: T::Builder) -> Option<PortOutput> {
    (rows > 0).then(|| PortOutput { port, rows, origin, columns: T::finish(builder) })
}

impl Origin {
    /// Rows that a collector gathered with it.
    fn gathered(&self) -> usize {
        match self {
            Origin::Each => 0,
            Origin::Picked(rows) => rows.len(),
            Origin::Made(times) => times.len(),
        }
    }

    /// `Each` where every row of the call emitted one row: the host then carries columns without a gather.
    fn simplified(self, call_rows: usize) -> Self {
        match self {
            Origin::Picked(rows) if is_identity(&rows, call_rows) => Origin::Each,
            other => other,
        }
    }
}

fn is_identity(picked: &[u32], rows: usize) -> bool {
    picked.len() == rows && picked.iter().zip(0..).all(|(&row, at)| row == at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(rows: usize, emit: impl FnOnce(&mut Collector<i64>)) -> Vec<PortOutput> {
        let mut collector = Collector::new(0, rows);
        emit(&mut collector);
        collector.finish(rows)
    }

    #[test]
    fn one_row_each_needs_no_positions() {
        let outputs = collected(3, |out| {
            (0..3).for_each(|row| {
                out.at(row);
                out.emit(row as i64);
            })
        });
        assert_eq!(outputs.len(), 1);
        assert_eq!((outputs[0].rows, &outputs[0].origin), (3, &Origin::Each));
    }

    #[test]
    fn chosen_rows_say_where_they_come_from() {
        let outputs = collected(3, |out| {
            out.at(2);
            out.emit(1i64);
            out.emit(2i64);
        });
        assert_eq!(outputs[0].origin, Origin::Picked(vec![2, 2]));
    }

    #[test]
    fn nothing_emitted_is_no_output() {
        assert!(collected(3, |_| ()).is_empty());
    }

    #[test]
    fn times_of_their_own_make_an_output_of_their_own() {
        let outputs = collected(2, |out| {
            out.at(1);
            out.emit(10i64);
            out.emit_at(Timestamp(5), 20i64);
            out.emit_at(Timestamp(6), 30i64);
            out.emit(40i64);
        });
        let seen: Vec<_> = outputs.into_iter().map(|output| (output.rows, output.origin)).collect();
        let expected =
            [(1, Origin::Picked(vec![1])), (2, Origin::Made(vec![5, 6])), (1, Origin::Picked(vec![1]))];
        assert_eq!(seen, expected);
    }
}
