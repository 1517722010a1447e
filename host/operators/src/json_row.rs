//! A row as JSON: what messages and dead letters show of it.

use arrow_array::{Array, ArrayRef, cast::AsArray, temporal_conversions, types};
use arrow_schema::DataType as ArrowType;
use millstream_types::Batch;
use serde_json::{Map, Value};

/// One row of a batch as a JSON object in the order of the columns. Times and dates are ISO 8601, bytes hexadecimal;
/// a number that JSON does not have is null.
pub(crate) fn row_json(batch: &Batch, row: usize) -> String {
    let schema = batch.records().schema_ref();
    let columns = schema.fields().iter().zip(batch.records().columns());
    let object: Map<String, Value> = columns.map(|(f, c)| (f.name().clone(), value_json(c, row))).collect();
    Value::Object(object).to_string()
}

fn value_json(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        ArrowType::Boolean => column.as_boolean().value(row).into(),
        ArrowType::Int32 => column.as_primitive::<types::Int32Type>().value(row).into(),
        ArrowType::Int64 => column.as_primitive::<types::Int64Type>().value(row).into(),
        ArrowType::Float32 => f64::from(column.as_primitive::<types::Float32Type>().value(row)).into(),
        ArrowType::Float64 => column.as_primitive::<types::Float64Type>().value(row).into(),
        ArrowType::Utf8View => column.as_string_view().value(row).into(),
        ArrowType::BinaryView => hex(column.as_binary_view().value(row)).into(),
        ArrowType::Timestamp(..) => {
            let time = column.as_primitive::<types::TimestampMillisecondType>().value(row);
            temporal_conversions::timestamp_ms_to_datetime(time)
                .map_or(time.into(), |t| format!("{t:?}Z").into())
        }
        ArrowType::Date32 => {
            let days = column.as_primitive::<types::Date32Type>().value(row);
            temporal_conversions::date32_to_datetime(days)
                .map_or(days.into(), |d| d.date().to_string().into())
        }
        other => Value::String(format!("({other})")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::test_support::text_batch;

    #[test]
    fn every_type_has_a_form() {
        let batch = text_batch(&[
            "a:boolean b:int32 c:int64 d:float32 e:float64 f:timestamp g:date h:utf8 i:binary j:int64?",
            r#"true -1 9007199254740993 0.5 NaN 1357034400123 15706 "x\"y" ab null"#,
        ]);
        let expected = r#"{"a":true,"b":-1,"c":9007199254740993,"d":0.5,"e":null,"f":"2013-01-01T10:00:00.123Z","g":"2013-01-01","h":"x\"y","i":"6162","j":null}"#;
        assert_eq!(super::row_json(&batch, 0), expected);
    }
}
