//! Batches from text and back.

use std::{str::FromStr, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array,
    Int64Array, StringViewArray, TimestampMillisecondArray, cast::AsArray, types,
};
use arrow_schema::DataType as ArrowType;
use millstream_types::{Batch, DataType, Field, NO_TIME, Schema};

/// The schema of a line such as `key:utf8 value:int64?`.
pub(crate) fn schema(line: &str) -> Schema {
    let field = |text: &str| {
        let (name, data_type) = text.split_once(':').expect("name:type");
        Field::parse(name, data_type).expect("a known type")
    };
    Schema::new(line.split_whitespace().map(field).collect::<Vec<_>>())
}

/// The batch of some lines, the first of which names the columns.
pub(crate) fn text_batch(lines: &[&str]) -> Batch {
    text_batch_of(&schema(lines[0]), &lines[1..])
}

/// The batch of some lines of a schema.
pub(crate) fn text_batch_of(schema: &Schema, lines: &[&str]) -> Batch {
    let mut times = Vec::new();
    let mut columns = vec![Vec::new(); schema.len()];
    for line in lines {
        let mut values = words(line);
        let has_time = values.first().is_some_and(|v| v.starts_with('@'));
        times.push(if has_time { values.remove(0)[1..].parse().expect("a time") } else { NO_TIME });
        assert_eq!(values.len(), schema.len(), "values of `{line}`");
        columns
            .iter_mut()
            .zip(values)
            .for_each(|(column, value)| column.push((value != "null").then_some(value)));
    }
    let arrays = schema.fields().iter().zip(columns).map(|(f, c)| array(f.data_type, c)).collect();
    Batch::new(schema, arrays, times.into()).expect("the lines have the columns of the first")
}

/// A batch as lines.
pub(crate) fn show(batch: &Batch) -> String {
    let row = |row: usize| {
        let time = batch.times()[row];
        let time = (time != NO_TIME).then(|| format!("@{time}"));
        let values = batch.records().columns().iter().map(|column| show_value(column, row));
        time.into_iter().chain(values).collect::<Vec<_>>().join(" ") + "\n"
    };
    (0..batch.rows()).map(row).collect()
}

/// Lines as `show` joins them.
pub(crate) fn rows(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next().expect("a closing quote") {
                    (i, '"') => break i,
                    (_, '\\') => word.extend(characters.next().map(|(_, c)| c)),
                    (_, c) => word.push(c),
                }
            };
            rest = &quoted[end + 1..];
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        words.push(word);
        rest = rest.trim_start();
    }
    words
}

fn array(data_type: DataType, values: Vec<Option<String>>) -> ArrayRef {
    fn parsed<T: FromStr>(values: Vec<Option<String>>) -> Vec<Option<T>> {
        let parse = |v: String| v.parse().ok().unwrap_or_else(|| panic!("cannot read `{v}`"));
        values.into_iter().map(|v| v.map(parse)).collect()
    }
    match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(parsed::<bool>(values))),
        DataType::Int32 => Arc::new(Int32Array::from(parsed::<i32>(values))),
        DataType::Date => Arc::new(Date32Array::from(parsed::<i32>(values))),
        DataType::Int64 => Arc::new(Int64Array::from(parsed::<i64>(values))),
        DataType::Timestamp => {
            Arc::new(TimestampMillisecondArray::from(parsed::<i64>(values)).with_timezone("UTC"))
        }
        DataType::Float32 => Arc::new(Float32Array::from(parsed::<f32>(values))),
        DataType::Float64 => Arc::new(Float64Array::from(parsed::<f64>(values))),
        DataType::Utf8 => Arc::new(values.into_iter().collect::<StringViewArray>()),
        DataType::Binary => {
            Arc::new(values.iter().map(|v| v.as_ref().map(String::as_bytes)).collect::<BinaryViewArray>())
        }
    }
}

fn show_value(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "null".into();
    }
    match column.data_type() {
        ArrowType::Boolean => column.as_boolean().value(row).to_string(),
        ArrowType::Int32 => column.as_primitive::<types::Int32Type>().value(row).to_string(),
        ArrowType::Date32 => column.as_primitive::<types::Date32Type>().value(row).to_string(),
        ArrowType::Int64 => column.as_primitive::<types::Int64Type>().value(row).to_string(),
        ArrowType::Timestamp(..) => {
            column.as_primitive::<types::TimestampMillisecondType>().value(row).to_string()
        }
        ArrowType::Float32 => column.as_primitive::<types::Float32Type>().value(row).to_string(),
        ArrowType::Float64 => column.as_primitive::<types::Float64Type>().value(row).to_string(),
        ArrowType::BinaryView => String::from_utf8_lossy(column.as_binary_view().value(row)).into_owned(),
        _ => match column.as_string_view().value(row) {
            text if text.contains(' ') && !text.contains('"') => format!("\"{text}\""),
            text => text.to_owned(),
        },
    }
}
