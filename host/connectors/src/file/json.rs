//! JSON lines: one object a line, a column a key; what no column has the name of is left out.
//!
//! `arrow-json` finds the values; the decoders of columns here are stricter than its own, which read `1.5` as the
//! integer 1, and put rows down as bad instead of failing for a batch.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray,
    builder::StringViewBuilder,
    timezone::Tz,
    types::{Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType},
};
use arrow_cast::parse::Parser;
use arrow_json::{
    ReaderBuilder,
    reader::{ArrayDecoder, Decoder, DecoderContext, DecoderFactory, Tape, TapeElement},
};
use arrow_schema::{ArrowError, Field as ArrowField, FieldRef, Schema as ArrowSchema};
use memchr::memchr;
use millstream_types::{DataType, Field, Limits, Schema};

use super::{
    json_text::json_text,
    rows::{Decoded, RecordDecoder, cut, no_value, wrong_value},
    value::{BadRows, float32, float64, hexadecimal, timestamp},
};

/// Decodes lines of JSON.
pub(crate) struct JsonDecoder {
    schema: Schema,
    bad: Arc<Mutex<BadRows>>,
    /// Kept for batches of usual size, as it holds buffers for as many rows.
    decoder: Option<Decoder>,
}

impl JsonDecoder {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self { schema: schema.clone(), bad: Arc::default(), decoder: None }
    }

    fn build(&self, records: usize) -> Result<Decoder, String> {
        let nullable = |field: &Field| ArrowField::new(&field.name, field.data_type.to_arrow(), true);
        let schema = ArrowSchema::new(self.schema.fields().iter().map(nullable).collect::<Vec<_>>());
        let factory = ColumnFactory { schema: self.schema.clone(), bad: self.bad.clone() };
        let builder = ReaderBuilder::new(Arc::new(schema)).with_batch_size(records + 1);
        builder.with_decoder_factory(Arc::new(factory)).build_decoder().map_err(|e| e.to_string())
    }
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, bytes: &[u8], records: usize) -> Result<Decoded, String> {
        let usual = records > Limits::BATCH_ROWS / 2;
        let mut decoder = match self.decoder.take().filter(|_| usual) {
            Some(decoder) => decoder,
            None => self.build(if usual { Limits::BATCH_ROWS } else { records })?,
        };
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let columns = decode(&mut decoder, bytes, records)
            .map_err(|reason| if records == 1 { explain(bytes, reason) } else { reason })?;
        if usual {
            self.decoder = Some(decoder);
        }
        let bad = std::mem::take(&mut *self.bad.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Decoded::without_bad(records, columns, bad))
    }
}

/// One row a line: a value that goes on in the next line is refused, however the lines are cut into batches.
fn decode(decoder: &mut Decoder, bytes: &[u8], records: usize) -> Result<Vec<ArrayRef>, String> {
    let mut found = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(memchr(b'\n', rest).map_or(rest.len(), |at| at + 1));
        rest = behind;
        decoder.decode(line).map_err(|e| e.to_string())?;
        found += usize::from(decoder.len() > found);
        if decoder.has_partial_record() || decoder.len() > found {
            return Err("a line is not one value".to_owned());
        }
    }
    match decoder.flush().map_err(|e| e.to_string())? {
        Some(batch) if batch.num_rows() == records => Ok(batch.columns().to_vec()),
        _ => Err("a line has no value".to_owned()),
    }
}

/// What is wrong with a line, by a parser that says where.
fn explain(line: &[u8], reason: String) -> String {
    match serde_json::from_slice::<serde_json::Value>(line.trim_ascii_end()) {
        Err(error) => {
            let (at, message) = (error.column(), error.to_string());
            let what = message.split(" at line").next().unwrap_or_default();
            format!("not JSON: {what} at byte {at} of the row; expected an object")
        }
        Ok(serde_json::Value::Object(_)) => reason,
        Ok(other) => {
            format!("found `{}`, expected an object with a key for each column", cut(&other.to_string()))
        }
    }
}

/// Makes the decoders of columns.
struct ColumnFactory {
    schema: Schema,
    bad: Arc<Mutex<BadRows>>,
}

impl fmt::Debug for ColumnFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ColumnFactory").field(&self.schema).finish()
    }
}

impl DecoderFactory for ColumnFactory {
    fn make_default_decoder(
        &self,
        _ctx: &DecoderContext,
        field: &FieldRef,
        _is_nullable: bool,
    ) -> Result<Option<Box<dyn ArrayDecoder>>, ArrowError> {
        let Some(index) = self.schema.index_of(field.name()) else {
            return Ok(None);
        };
        if *field.data_type() != self.schema.fields()[index].data_type.to_arrow() {
            // The row itself, which Arrow presents as a nameless column.
            return Ok(None);
        }
        let utc = "+00:00".parse().expect("this is a time zone");
        Ok(Some(Box::new(ColumnDecoder {
            field: self.schema.fields()[index].clone(),
            utc,
            bad: self.bad.clone(),
        })))
    }
}

/// Decodes one column.
struct ColumnDecoder {
    field: Field,
    utc: Tz,
    bad: Arc<Mutex<BadRows>>,
}

impl ArrayDecoder for ColumnDecoder {
    fn decode(&mut self, tape: &Tape<'_>, positions: &[u32]) -> Result<ArrayRef, ArrowError> {
        let bad = self.bad.clone();
        let mut bad = bad.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match self.field.data_type {
            DataType::Boolean => {
                Arc::new(self.values(tape, positions, &mut bad, boolean).collect::<BooleanArray>())
            }
            DataType::Int32 => {
                let int32 = |element| i32::try_from(int64(tape, element)?).ok();
                Arc::new(self.values(tape, positions, &mut bad, int32).collect::<PrimitiveArray<Int32Type>>())
            }
            DataType::Int64 => {
                let values = self.values(tape, positions, &mut bad, |element| int64(tape, element));
                Arc::new(values.collect::<PrimitiveArray<Int64Type>>())
            }
            DataType::Float32 => {
                let values =
                    self.values(tape, positions, &mut bad, |element| float32(number(tape, element)?));
                Arc::new(values.collect::<PrimitiveArray<Float32Type>>())
            }
            DataType::Float64 => {
                let values =
                    self.values(tape, positions, &mut bad, |element| float64(number(tape, element)?));
                Arc::new(values.collect::<PrimitiveArray<Float64Type>>())
            }
            DataType::Timestamp => {
                let time =
                    |element| timestamp(&self.utc, number(tape, element).or_else(|| text(tape, element))?);
                let values = self.values(tape, positions, &mut bad, time);
                Arc::new(values.collect::<PrimitiveArray<TimestampMillisecondType>>().with_timezone("UTC"))
            }
            DataType::Date => {
                let values =
                    self.values(tape, positions, &mut bad, |element| Date32Type::parse(text(tape, element)?));
                Arc::new(values.collect::<PrimitiveArray<Date32Type>>())
            }
            DataType::Utf8 => Arc::new(self.text(tape, positions, &mut bad)),
            DataType::Binary => {
                let values =
                    self.values(tape, positions, &mut bad, |element| hexadecimal(text(tape, element)?));
                Arc::new(values.collect::<BinaryViewArray>())
            }
        })
    }
}

impl ColumnDecoder {
    fn values<'a, V>(
        &'a self,
        tape: &'a Tape<'a>,
        positions: &'a [u32],
        bad: &'a mut BadRows,
        read: impl Fn(TapeElement) -> Option<V> + 'a,
    ) -> impl Iterator<Item = Option<V>> + 'a {
        positions.iter().enumerate().map(move |(row, &position)| {
            let element = tape.get(position);
            if matches!(element, TapeElement::Null) {
                if !self.field.nullable {
                    bad.entry(row).or_insert_with(|| no_value(&self.field));
                }
                return None;
            }
            let value = read(element);
            if value.is_none() {
                bad.entry(row).or_insert_with(|| wrong_value(&self.field, &json_text(tape, position)));
            }
            value
        })
    }

    /// Text; nested values as the JSON that they are.
    fn text(&self, tape: &Tape<'_>, positions: &[u32], bad: &mut BadRows) -> StringViewArray {
        let mut builder = StringViewBuilder::with_capacity(positions.len());
        for (row, &position) in positions.iter().enumerate() {
            match tape.get(position) {
                TapeElement::String(index) => builder.append_value(tape.get_string(index)),
                TapeElement::StartObject(_) | TapeElement::StartList(_) => {
                    builder.append_value(json_text(tape, position))
                }
                element => {
                    builder.append_null();
                    if !matches!(element, TapeElement::Null) {
                        bad.entry(row)
                            .or_insert_with(|| wrong_value(&self.field, &json_text(tape, position)));
                    } else if !self.field.nullable {
                        bad.entry(row).or_insert_with(|| no_value(&self.field));
                    }
                }
            }
        }
        builder.finish()
    }
}

fn boolean(element: TapeElement) -> Option<bool> {
    match element {
        TapeElement::True => Some(true),
        TapeElement::False => Some(false),
        _ => None,
    }
}

fn number<'a>(tape: &Tape<'a>, element: TapeElement) -> Option<&'a str> {
    match element {
        TapeElement::Number(index) => Some(tape.get_string(index)),
        _ => None,
    }
}

fn text<'a>(tape: &Tape<'a>, element: TapeElement) -> Option<&'a str> {
    match element {
        TapeElement::String(index) => Some(tape.get_string(index)),
        _ => None,
    }
}

/// JSON has one kind of number: `1e3` and `5.0` are whole ones, `1.5` is not.
fn int64(tape: &Tape<'_>, element: TapeElement) -> Option<i64> {
    let found = number(tape, element)?;
    Int64Type::parse(found).or_else(|| {
        let value = Float64Type::parse(found)?;
        // Whole numbers up to 2^53 are exact in 64-bit floats.
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    })
}
