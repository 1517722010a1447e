//! Columns of a user's choice: each has a distribution, and each value is a function of seed, column and record.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray, TimestampMillisecondArray, UInt32Array,
};
use arrow_select::{nullif::nullif, take::take};
use millstream_types::{Batch, DataType, Field, NO_TIME, Schema};
use serde_json::{Map, Value};

use super::{
    Generate, Kind, Numbers,
    distribution::{Distribution, FieldOptions, Random},
};
use crate::{
    mix::mix,
    options::{OptionsError, parse},
};

/// Records of columns with distributions.
#[derive(Clone)]
pub(crate) struct Fields {
    schema: Schema,
    columns: Arc<[Column]>,
}

struct Column {
    distribution: Distribution,
    /// Share of the records that have no value here.
    null: f64,
    seed: u64,
}

impl Fields {
    /// Reads `fields = { name = { kind = "...", ... } }`.
    pub(crate) fn new(options: &Map<String, Value>, seed: u64) -> Result<Self, OptionsError> {
        if options.is_empty() {
            return Err(OptionsError::at(
                "fields",
                "there is no field: expected at least one, such as `id = { kind = \"sequence\" }`",
            ));
        }
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (index, (name, options)) in (1..).zip(options) {
            let (field, column) = column(name, options, mix(seed.wrapping_add(mix(index))))
                .map_err(|e| OptionsError { key: Some(key(name, e.key)), ..e })?;
            fields.push(field);
            columns.push(column);
        }
        Ok(Self { schema: Schema::new(fields), columns: columns.into() })
    }
}

fn column(name: &str, options: &Value, seed: u64) -> Result<(Field, Column), OptionsError> {
    let FieldOptions { null, distribution } = FieldOptions::split(options)?;
    let distribution = Distribution::new(parse("generator", &distribution)?)?;
    let field = Field { name: name.to_owned(), data_type: distribution.data_type(), nullable: null > 0.0 };
    Ok((field, Column { distribution, null, seed }))
}

fn key(name: &str, key: Option<String>) -> String {
    key.map_or_else(|| format!("fields.{name}"), |key| format!("fields.{name}.{key}"))
}

impl Kind for Fields {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.schema.clone())]
    }

    fn generator(&self) -> Box<dyn Generate> {
        Box::new(self.clone())
    }
}

impl Generate for Fields {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let columns = self.columns.iter().map(|column| column.values(numbers)).collect();
        let times = vec![NO_TIME; numbers.count].into();
        vec![(0, Batch::new(&self.schema, columns, times).expect("columns of the types that were declared"))]
    }
}

impl Column {
    fn values(&self, numbers: &Numbers) -> ArrayRef {
        let randoms = || numbers.iter().map(|i| (i, Random::new(self.seed, i)));
        let values: ArrayRef = match &self.distribution {
            Distribution::Integers(integers) => {
                Arc::new(Int64Array::from_iter_values(randoms().map(|(i, random)| integers.value(i, random))))
            }
            Distribution::Floats { min, max } => {
                let value = |(_, mut random): (u64, Random)| min + random.unit() * (max - min);
                Arc::new(Float64Array::from_iter_values(randoms().map(value)))
            }
            Distribution::Times(times) => {
                let times = randoms().map(|(i, random)| times.value(i, random));
                Arc::new(TimestampMillisecondArray::from_iter_values(times).with_timezone("UTC"))
            }
            Distribution::Choice { values, weights } => {
                let picks = randoms().map(|(_, mut random)| weights.pick(random.unit()) as u32);
                take(values, &UInt32Array::from_iter_values(picks), None)
                    .expect("every pick is one of the values")
            }
            Distribution::Text { min, max } => {
                let text = |(_, random): (u64, Random)| random.text(*min, *max);
                Arc::new(StringViewArray::from_iter_values(randoms().map(text)))
            }
        };
        if self.null == 0.0 {
            return values;
        }
        // Another seed, so that null does not depend on the value.
        let null = numbers.iter().map(|i| Some(Random::new(mix(self.seed), i).unit() < self.null));
        nullif(&values, &null.collect::<BooleanArray>()).expect("the mask is as long as the column")
    }
}

impl Distribution {
    fn data_type(&self) -> DataType {
        match self {
            Distribution::Integers(_) => DataType::Int64,
            Distribution::Floats { .. } => DataType::Float64,
            Distribution::Times(_) => DataType::Timestamp,
            Distribution::Choice { values, .. } if values.as_any().is::<Int64Array>() => DataType::Int64,
            Distribution::Choice { .. } | Distribution::Text { .. } => DataType::Utf8,
        }
    }
}
