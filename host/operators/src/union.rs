//! The union: passes on what it reads from several streams of equal columns. The streams may differ in which columns
//! are nullable, so rows get the union's own schema.

use async_trait::async_trait;
use millstream_operator::{Collector, Operator, OperatorError};
use millstream_types::{Batch, Schema};

/// Passes on rows of several streams.
pub struct UnionOperator {
    schema: Schema,
}

impl UnionOperator {
    /// A union whose rows have these columns.
    pub fn new(schema: Schema) -> Self {
        Self { schema }
    }
}

#[async_trait(?Send)]
impl Operator for UnionOperator {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let same = batch.records().schema_ref() == self.schema.arrow();
        if same {
            out.emit(0, batch);
            return Ok(());
        }
        let columns = batch.records().columns().to_vec();
        let union = Batch::new(&self.schema, columns, batch.times().clone())?;
        out.emit(0, union.with_positions(batch.positions().cloned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use millstream_types::{DataType, Field};

    use super::*;
    use crate::test_support::{process, rows, text_batch};

    #[test]
    fn rows_get_the_schema_of_the_union() {
        let schema = Schema::new(vec![Field::nullable("x", DataType::Int64)]);
        let mut operator = UnionOperator::new(schema.clone());
        let mut out = Collector::new();
        let call = operator.process(0, text_batch(&["x:int64", "1"]), &mut out);
        futures_util::FutureExt::now_or_never(call).expect("never waits").expect("fits");
        let Some((0, millstream_types::StreamElement::Batch(batch))) = out.pop() else { panic!("a batch") };
        assert_eq!(batch.records().schema_ref(), schema.arrow());
        let output = process(&mut operator, text_batch(&["x:int64?", "@5 null"])).expect("fits");
        assert_eq!(output, rows(&["0: @5 null"]));
    }
}
