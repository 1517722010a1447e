//! Stored rows in other columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, cast::AsArray, new_null_array, types::*};
use millstream_types::{Column, Columns, DataType, StateForm, StatePart};

use super::walk::{Token, walk};
use crate::{
    StateError,
    fold::folded,
    row_codec::RowCodec,
    snapshot::{put_bytes, put_i64, put_u32},
};

/// A part with its rows in other columns, found by their names: widened, null where they are new. What cannot be that way
/// is an error; the verdict on the state has ruled it out.
pub fn evolve_part(part: StatePart, columns: &[Column], version: u32) -> Result<StatePart, StateError> {
    // Nothing may build on what it was.
    let StatePart { name, form, columns: old, mut chunks, .. } = folded(part)?;
    for chunk in &mut chunks {
        let rows = rows_of(form, &old, &chunk.bytes)?;
        let rows = evolve(&rows, &old, columns)
            .map_err(|problem| StateError::Shape { name: name.clone(), problem })?;
        chunk.bytes = replace_rows(form, &old, &chunk.bytes, columns, &rows)?;
    }
    Ok(StatePart { name, form, version, columns: columns.to_vec(), base: None, chunks, files: None })
}

/// The rows of a chunk, in order.
pub fn rows_of(form: StateForm, columns: &[Column], chunk: &[u8]) -> Result<Columns, StateError> {
    let mut rows = RowCodec::new(columns).reader(0);
    walk(form, chunk, &mut rows, |_| {})?;
    Ok(rows.finish())
}

/// A chunk with other rows in the place of its own, as many and in the same order.
pub fn replace_rows(
    form: StateForm,
    columns: &[Column],
    chunk: &[u8],
    new_columns: &[Column],
    rows: &Columns,
) -> Result<Vec<u8>, StateError> {
    let mut old = RowCodec::new(columns).reader(0);
    let mut tokens = Vec::new();
    walk(form, chunk, &mut old, |token| tokens.push(token))?;
    if old.rows() != rows.rows {
        let problem = format!("{} rows in the place of {}", rows.rows, old.rows());
        return Err(StateError::Shape { name: form.name().to_owned(), problem });
    }
    let codec = RowCodec::new(new_columns);
    let writer = codec.writer(rows);
    let (mut out, mut next) = (Vec::with_capacity(chunk.len()), 0);
    let mut row = |out: &mut Vec<u8>| {
        writer.write(next, out);
        next += 1;
    };
    for token in tokens {
        match token {
            Token::Key(bytes) | Token::MapKey(bytes) => put_bytes(bytes, &mut out),
            Token::Window(start, end) => {
                put_i64(start, &mut out);
                put_i64(end, &mut out);
            }
            Token::Count(count) => put_u32(count, &mut out),
            Token::Time(time) => put_i64(time, &mut out),
            Token::Flags(flags) => out.push(flags),
            Token::Row => row(&mut out),
            Token::RowBlob => blob(&mut out, &mut row),
            Token::Rows(count) => {
                put_u32(count, &mut out);
                blob(&mut out, |out| (0..count).for_each(|_| row(out)));
            }
        }
    }
    Ok(out)
}

/// Appends what `write` appends, behind its length.
fn blob(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_u32(0, out);
    write(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The rows in other columns.
fn evolve(rows: &Columns, from: &[Column], to: &[Column]) -> Result<Columns, String> {
    let column = |wanted: &Column| {
        let found = from.iter().position(|old| old.name == wanted.name);
        match found {
            Some(index) => widen(&rows.arrays[index], wanted),
            None if wanted.nullable => Ok(new_null_array(&wanted.data_type.to_arrow(), rows.rows)),
            None => Err(format!("`{}` is not there and must not be null", wanted.name)),
        }
    };
    Ok(Columns::new(rows.rows, to.iter().map(column).collect::<Result<_, _>>()?))
}

fn widen(array: &ArrayRef, wanted: &Column) -> Result<ArrayRef, String> {
    if !wanted.nullable && array.null_count() > 0 {
        return Err(format!("`{}` is null in {} rows", wanted.name, array.null_count()));
    }
    if *array.data_type() == wanted.data_type.to_arrow() {
        return Ok(array.clone());
    }
    match (DataType::from_arrow(array.data_type()), wanted.data_type) {
        (Some(DataType::Int32), DataType::Int64) => {
            let widened: Int64Array = array.as_primitive::<Int32Type>().unary(i64::from);
            Ok(Arc::new(widened))
        }
        (Some(DataType::Float32), DataType::Float64) => {
            let widened: Float64Array = array.as_primitive::<Float32Type>().unary(f64::from);
            Ok(Arc::new(widened))
        }
        (found, wanted_type) => {
            let found = found.map_or_else(|| array.data_type().to_string(), |t| t.to_string());
            Err(format!("`{}` is {found} and cannot become {wanted_type}", wanted.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, StringViewArray};
    use millstream_types::{KeyGroup, StateChunk};

    use super::*;

    fn column(name: &str, data_type: DataType, nullable: bool) -> Column {
        Column { name: name.into(), data_type, nullable }
    }

    fn old() -> Vec<Column> {
        vec![column("n", DataType::Int32, false), column("t", DataType::Utf8, false)]
    }

    fn new() -> Vec<Column> {
        vec![column("extra", DataType::Float64, true), column("n", DataType::Int64, false)]
    }

    /// A row of the old columns.
    fn row(n: i32, out: &mut Vec<u8>) {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int32Array::from(vec![n])), Arc::new(StringViewArray::from(vec!["text"]))];
        RowCodec::new(&old()).writer(&Columns::new(1, columns)).write(0, out);
    }

    /// One chunk of each form with rows, and how many of them it has.
    fn chunk(form: StateForm) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let key = |out: &mut Vec<u8>| put_bytes(b"key", out);
        let window = |out: &mut Vec<u8>| (0..2).for_each(|i| put_i64(i, out));
        let rows = |out: &mut Vec<u8>| {
            put_u32(2, out);
            blob(out, |out| (1..3).for_each(|n| row(n, out)));
        };
        match form {
            StateForm::Value => (1..3).for_each(|n| {
                key(&mut out);
                row(n, &mut out);
            }),
            StateForm::List => {
                key(&mut out);
                rows(&mut out);
            }
            StateForm::Map => {
                key(&mut out);
                put_u32(2, &mut out);
                (1..3).for_each(|n| {
                    put_bytes(&[n as u8], &mut out);
                    blob(&mut out, |out| row(n, out));
                });
            }
            StateForm::Accumulators => {
                window(&mut out);
                put_u32(2, &mut out);
                (1..3).for_each(|n| {
                    key(&mut out);
                    row(n, &mut out);
                });
            }
            StateForm::Contents => {
                window(&mut out);
                put_u32(1, &mut out);
                key(&mut out);
                rows(&mut out);
            }
            StateForm::SessionAccumulators => (1..4).for_each(|n| {
                key(&mut out);
                window(&mut out);
                // The last one has nothing left.
                out.push(if n < 3 { 2 } else { 1 });
                (n < 3).then(|| row(n, &mut out));
            }),
            StateForm::SessionContents => {
                key(&mut out);
                window(&mut out);
                out.push(2);
                rows(&mut out);
            }
            StateForm::TimedRows => {
                key(&mut out);
                put_u32(2, &mut out);
                (1..3).for_each(|n| {
                    put_i64(7, &mut out);
                    row(n, &mut out);
                });
            }
            StateForm::Broadcast => (1..3).for_each(|n| {
                put_bytes(b"k", &mut out);
                row(n, &mut out);
            }),
            StateForm::Overtaken => {
                [3, 4].iter().for_each(|&end| put_u32(end, &mut out));
                for n in 1..3 {
                    out.push(0);
                    put_u32(1, &mut out);
                    put_i64(7, &mut out);
                    row(n, &mut out);
                    out.push(1);
                    put_i64(9, &mut out);
                }
            }
            StateForm::InFlight => {
                put_i64(7, &mut out);
                put_u32(1, &mut out);
                row(1, &mut out);
                return (out, 1);
            }
            _ => {
                row(1, &mut out);
                return (out, 1);
            }
        }
        (out, 2)
    }

    const WITH_ROWS: [StateForm; 13] = [
        StateForm::Value,
        StateForm::List,
        StateForm::Map,
        StateForm::Accumulators,
        StateForm::Contents,
        StateForm::SessionAccumulators,
        StateForm::SessionContents,
        StateForm::TimedRows,
        StateForm::Items,
        StateForm::UnionItems,
        StateForm::Broadcast,
        StateForm::InFlight,
        StateForm::Overtaken,
    ];

    #[test]
    fn rows_of_every_form_are_rewritten_and_all_else_stays() {
        for form in WITH_ROWS {
            let (bytes, rows) = chunk(form);
            let chunks = vec![StateChunk::whole(KeyGroup(1), bytes.clone())];
            let part = StatePart {
                name: "s".into(),
                form,
                version: 1,
                columns: old(),
                base: None,
                chunks,
                files: None,
            };
            let evolved = evolve_part(part.clone(), &new(), 2).expect("all of it can be");
            assert_eq!((evolved.version, &evolved.columns), (2, &new()), "{form:?}");
            let found = rows_of(form, &new(), &evolved.chunks[0].bytes).expect("just written");
            assert_eq!(found.arrays[0].null_count(), rows, "{form:?}");
            let numbers = found.arrays[1].as_primitive::<Int64Type>().values().to_vec();
            assert_eq!(numbers, (1..=rows as i64).collect::<Vec<_>>(), "{form:?}");
            // Without the rows they are the same.
            let same = evolve_part(part, &old(), 1).expect("the same columns");
            assert_eq!(same.chunks[0].bytes, bytes, "{form:?}");
        }
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        for form in WITH_ROWS {
            let (bytes, _) = chunk(form);
            // A chunk may end behind any of its three entries at most, that of a channel behind its ends or any element.
            let whole = (1..bytes.len()).filter(|&end| rows_of(form, &old(), &bytes[..end]).is_ok());
            assert!(whole.count() <= if form == StateForm::Overtaken { 4 } else { 2 }, "{form:?}");
            let mut longer = bytes;
            longer.push(9);
            rows_of(form, &old(), &longer).expect_err("a byte too many");
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let (bytes, _) = chunk(StateForm::Value);
        let part = StatePart {
            name: "s".into(),
            form: StateForm::Value,
            version: 1,
            columns: old(),
            base: None,
            chunks: vec![StateChunk::item(bytes)],
            files: None,
        };
        for (wanted, words) in [
            (column("new", DataType::Utf8, false), "`new` is not there"),
            (column("t", DataType::Int64, true), "`t` is utf8 and cannot become int64"),
        ] {
            let error = evolve_part(part.clone(), &[wanted], 2).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
