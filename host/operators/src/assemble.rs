//! From what a function made to the batches that go on: carried columns are put back by reference, or gathered where
//! an output row comes from another position, and every row gets its event time.
//!
//! The *origin* of a call is the batch that its output rows come from. For `map` and `process` it is the rows that
//! were sent, for `on-timer` the timers, for `finish` and `apply` the windows: there its columns are the key columns
//! (and window start and end where asked), and its times those of the timers or `window.end - 1`.

use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::take::take;
use millstream_operator::{Collector, FunctionError, FunctionOutput, OperatorError, Origin};
use millstream_types::{Batch, Carry, Field, Schema, compact};

/// Where a column of an output port comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputColumn {
    /// Column of the origin.
    Carried(usize),
    /// Column that the function makes.
    Made(usize),
}

/// The columns of an output port and where each comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// The columns that go on.
    pub schema: Schema,
    /// One entry a column of `schema`.
    pub columns: Vec<OutputColumn>,
}

impl PortLayout {
    /// The layout of a port that makes the columns `made` over an origin with the columns `origin`.
    ///
    /// With [`Carry::Extend`] all columns of the origin are there; one that the function makes under the same name
    /// takes its place, the others are appended in declared order. With [`Carry::Replace`] only the made ones are.
    pub fn new(carry: Carry, origin: &[Field], made: &[Field]) -> Self {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        if carry == Carry::Extend {
            for (i, field) in origin.iter().enumerate() {
                let replaced = made.iter().position(|m| m.name == field.name);
                fields.push(replaced.map_or(field, |m| &made[m]).clone());
                columns.push(replaced.map_or(OutputColumn::Carried(i), OutputColumn::Made));
            }
        }
        for (i, field) in made.iter().enumerate() {
            if !columns.contains(&OutputColumn::Made(i)) {
                fields.push(field.clone());
                columns.push(OutputColumn::Made(i));
            }
        }
        Self { schema: Schema::new(fields), columns }
    }

    /// Whether any column comes from the origin.
    pub fn carries(&self) -> bool {
        self.columns.iter().any(|c| matches!(c, OutputColumn::Carried(_)))
    }
}

/// What a function's outputs become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// The function's name, for messages.
    pub function: String,
    /// Its output ports in order; port i of the function is port i of the operator.
    pub ports: Vec<PortLayout>,
}

impl OutputSpec {
    /// Whether any port has a column of the origin: if none does, the origin needs only its times.
    pub fn carries(&self) -> bool {
        self.ports.iter().any(PortLayout::carries)
    }

    /// Emits what a call made, in its order. `call` is the export that was called, for messages.
    pub fn emit(
        &self,
        call: &'static str,
        origin: &Batch,
        outputs: Vec<FunctionOutput>,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        for output in outputs {
            let port = output.port;
            if let Some(batch) = self.assemble(call, origin, output)? {
                out.emit(port, batch);
            }
        }
        Ok(())
    }

    /// The batch of an output; none if it has no rows, as life-cycle calls have no origin whose columns an empty batch
    /// could have.
    fn assemble(
        &self,
        call: &'static str,
        origin: &Batch,
        output: FunctionOutput,
    ) -> Result<Option<Batch>, OperatorError> {
        let port = output.port;
        let malformed = |problem| FunctionError::Malformed { function: self.function.clone(), call, problem };
        let Some(layout) = self.ports.get(port) else {
            let ports = self.ports.len();
            return Err(malformed(format!("rows for output port {port}: there are {ports} ports")).into());
        };
        let batch = match output.origin {
            Origin::Each if output.rows != origin.rows() => {
                let (rows, wanted) = (output.rows, origin.rows());
                return Err(
                    malformed(format!("{rows} rows of origin `each` for {wanted} rows of input")).into()
                );
            }
            _ if output.rows == 0 => return Ok(None),
            Origin::Each => layout.each(origin, &output.columns),
            Origin::Picked(rows) => layout.picked(origin, rows.into(), &output.columns),
            Origin::Made(_) if layout.carries() => {
                let problem = "rows of origin `made` for output port";
                return Err(malformed(format!(
                    "{problem} {port}, which extends its input: name a row of it"
                ))
                .into());
            }
            Origin::Made(times) => {
                let columns = layout.fill(&output.columns, |_| unreachable!("nothing is carried"));
                Batch::new(&layout.schema, columns, times.into())
            }
        };
        Ok(Some(batch?))
    }
}

impl PortLayout {
    fn each(&self, origin: &Batch, made: &[ArrayRef]) -> Result<Batch, millstream_types::BatchError> {
        let columns = self.fill(made, |i| origin.column(i).clone());
        let batch = Batch::new(&self.schema, columns, origin.times().clone())?;
        Ok(batch.with_positions(origin.positions().cloned()))
    }

    fn picked(
        &self,
        origin: &Batch,
        rows: UInt32Array,
        made: &[ArrayRef],
    ) -> Result<Batch, millstream_types::BatchError> {
        let sparse = rows.len() * SPARSE < origin.rows();
        let columns = self.fill(made, |i| {
            let gathered = take(origin.column(i), &rows, None).expect("origins lie within the input");
            if sparse { compact(&gathered) } else { gathered }
        });
        let times = rows.values().iter().map(|&r| origin.times()[r as usize]).collect();
        let batch = Batch::new(&self.schema, columns, times)?;
        Ok(batch.with_positions(origin.positions().map(|p| p.pick(rows.values()))))
    }

    fn fill(&self, made: &[ArrayRef], carried: impl Fn(usize) -> ArrayRef) -> Vec<ArrayRef> {
        let column = |c: &OutputColumn| match *c {
            OutputColumn::Carried(i) => carried(i),
            OutputColumn::Made(i) => made[i].clone(),
        };
        self.columns.iter().map(column).collect()
    }
}

/// When fewer than one row in so many is left, its text is copied out of the buffers of the others.
const SPARSE: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringViewArray};
    use millstream_types::{DataType, StreamElement};

    use super::*;
    use crate::test_support::{rows, show};

    fn origin() -> Batch {
        let schema = Schema::new(vec![Field::new("name", DataType::Utf8), Field::new("n", DataType::Int64)]);
        let names: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c"]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        Batch::new(&schema, vec![names, numbers], vec![10, 20, 30].into()).expect("fits")
    }

    fn spec(carry: Carry) -> OutputSpec {
        let made = [Field::nullable("n", DataType::Int64), Field::new("m", DataType::Int64)];
        let origin = [Field::new("name", DataType::Utf8), Field::new("n", DataType::Int64)];
        OutputSpec { function: "f".into(), ports: vec![PortLayout::new(carry, &origin, &made)] }
    }

    fn run(carry: Carry, origin_of: Origin, count: usize) -> Result<String, String> {
        let column =
            |from: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(from..from + count as i64)) };
        let columns = vec![column(100), column(200)];
        let output = FunctionOutput { port: 0, rows: count, origin: origin_of, columns };
        let mut out = Collector::new();
        spec(carry).emit("apply", &origin(), vec![output], &mut out).map_err(|e| e.to_string())?;
        match out.pop() {
            Some((0, StreamElement::Batch(batch))) => Ok(show(&batch)),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn extend_replaces_in_place_and_appends() {
        let spec = spec(Carry::Extend);
        assert_eq!(spec.ports[0].schema.names(), "name, n, m");
        assert!(spec.ports[0].schema.fields()[1].nullable, "the made column's type counts");
        let expected = rows(&["@10 a 100 200", "@20 b 101 201", "@30 c 102 202"]);
        assert_eq!(run(Carry::Extend, Origin::Each, 3), Ok(expected));
    }

    #[test]
    fn rows_are_gathered_by_origin_with_their_times() {
        let expected = rows(&["@30 c 100 200", "@10 a 101 201", "@30 c 102 202", "@20 b 103 203"]);
        assert_eq!(run(Carry::Extend, Origin::Picked(vec![2, 0, 2, 1]), 4), Ok(expected));
    }

    #[test]
    fn replace_keeps_only_what_was_made() {
        assert_eq!(spec(Carry::Replace).ports[0].schema.names(), "n, m");
        assert_eq!(run(Carry::Replace, Origin::Picked(vec![1]), 1), Ok(rows(&["@20 100 200"])));
        assert_eq!(run(Carry::Replace, Origin::Made(vec![7]), 1), Ok(rows(&["@7 100 200"])));
    }

    #[test]
    fn what_cannot_be_assembled_is_the_functions_fault() {
        let error = run(Carry::Extend, Origin::Made(vec![7]), 1).expect_err("nothing to carry");
        assert!(error.contains("origin `made` for output port 0, which extends its input"), "{error}");
        let error = run(Carry::Extend, Origin::Each, 2).expect_err("not one a row");
        assert!(error.contains("2 rows of origin `each` for 3 rows of input"), "{error}");
    }

    #[test]
    fn a_filter_is_extend_without_columns() {
        let fields = [Field::new("name", DataType::Utf8), Field::new("n", DataType::Int64)];
        let spec =
            OutputSpec { function: "f".into(), ports: vec![PortLayout::new(Carry::Extend, &fields, &[])] };
        let output =
            FunctionOutput { port: 0, rows: 1, origin: Origin::Picked(vec![1]), columns: Vec::new() };
        let mut out = Collector::new();
        spec.emit("apply", &origin(), vec![output], &mut out).expect("fits");
        let Some((0, StreamElement::Batch(batch))) = out.pop() else { panic!("one batch") };
        assert_eq!(show(&batch), rows(&["@20 b 2"]));
    }
}
