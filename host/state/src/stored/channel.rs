//! What a channel had under way when a barrier overtook it, as a chunk of a snapshot, and back.

use millstream_types::{Batch, Column, Columns, Schema, StateForm, StreamElement};

use super::walk::{ROWS, Token, WATERMARK, walk};
use crate::{
    StateError,
    row_codec::RowCodec,
    snapshot::{put_i64, put_u32},
};

/// What one channel had under way.
#[derive(Clone, Debug)]
pub struct ChannelContent {
    /// The sending subtask.
    pub from: u32,
    /// The receiving subtask.
    pub to: u32,
    /// Batches and watermarks, in order.
    pub elements: Vec<StreamElement>,
}

/// The chunk of a channel whose rows have these columns. Other elements than batches and watermarks are left out.
pub fn encode_channel(content: &ChannelContent, columns: &[Column]) -> Vec<u8> {
    let codec = RowCodec::new(columns);
    let mut chunk = Vec::new();
    put_u32(content.from, &mut chunk);
    put_u32(content.to, &mut chunk);
    for element in &content.elements {
        match element {
            StreamElement::Batch(batch) => {
                chunk.push(ROWS);
                put_u32(batch.rows() as u32, &mut chunk);
                let columns = Columns::new(batch.rows(), batch.records().columns().to_vec());
                let writer = codec.writer(&columns);
                for (row, &time) in batch.times().iter().enumerate() {
                    put_i64(time, &mut chunk);
                    writer.write(row, &mut chunk);
                }
            }
            StreamElement::Watermark(watermark) => {
                chunk.push(WATERMARK);
                put_i64(*watermark, &mut chunk);
            }
            _ => {}
        }
    }
    chunk
}

/// Reads the chunk of a channel whose rows have this schema.
pub fn decode_channel(chunk: &[u8], schema: &Schema) -> Result<ChannelContent, StateError> {
    let columns: Vec<Column> = schema.columns();
    let mut reader = RowCodec::new(&columns).reader(0);
    let (mut counts, mut times, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    // Where each batch begins, and what a time is of.
    let mut kind = ROWS;
    walk(StateForm::Overtaken, chunk, &mut reader, |token| match token {
        Token::Count(count) => {
            if counts.len() >= ENDS {
                elements.push(Piece::Rows(count as usize));
            }
            counts.push(count);
        }
        Token::Flags(flags) => kind = flags,
        Token::Time(time) if kind == WATERMARK => elements.push(Piece::Watermark(time)),
        Token::Time(time) => times.push(time),
        _ => {}
    })?;
    let rows = Batch::new(schema, reader.finish().arrays, times.into());
    let rows =
        rows.map_err(|error| StateError::Shape { name: CHANNEL.into(), problem: error.to_string() })?;
    let mut offset = 0;
    let element = |piece: Piece| match piece {
        Piece::Watermark(watermark) => StreamElement::Watermark(watermark),
        Piece::Rows(count) => {
            offset += count;
            StreamElement::Batch(rows.slice(offset - count, count))
        }
    };
    Ok(ChannelContent {
        from: counts[0],
        to: counts[1],
        elements: elements.into_iter().map(element).collect(),
    })
}

/// An element whose rows are elsewhere.
enum Piece {
    Rows(usize),
    Watermark(i64),
}

/// How many numbers come before the elements.
const ENDS: usize = 2;
/// What messages call it.
const CHANNEL: &str = "channel";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringViewArray};
    use millstream_types::{DataType, Field};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("n", DataType::Int64), Field::nullable("t", DataType::Utf8)])
    }

    fn batch(first: i64, texts: Vec<Option<&str>>) -> StreamElement {
        let numbers = first..first + texts.len() as i64;
        let times: Vec<i64> = numbers.clone().map(|n| n * 10).collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(numbers)), Arc::new(StringViewArray::from(texts))];
        StreamElement::Batch(Batch::new(&schema(), columns, times.into()).expect("fits"))
    }

    fn content() -> ChannelContent {
        let elements = vec![
            batch(1, vec![Some("one"), None]),
            StreamElement::Watermark(15),
            StreamElement::Idle,
            StreamElement::Watermark(-3),
            batch(0, vec![]),
            batch(3, vec![Some("")]),
        ];
        ChannelContent { from: 7, to: 300, elements }
    }

    fn show(element: &StreamElement) -> String {
        match element {
            StreamElement::Batch(batch) => {
                format!("{:?} {:?} {:?}", batch.times(), batch.column(0), batch.column(1))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let read =
            decode_channel(&encode_channel(&content(), &schema().columns()), &schema()).expect("whole");
        assert_eq!((read.from, read.to), (7, 300));
        let kept = content().elements.into_iter().filter(|e| !matches!(e, StreamElement::Idle));
        let expected: Vec<String> = kept.map(|element| show(&element)).collect();
        assert_eq!(read.elements.iter().map(show).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn golden_bytes() {
        let bytes = encode_channel(&content(), &schema().columns());
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "070000002c010000\
             0002000000\
             0a00000000000000000100000000000000030000006f6e65\
             1400000000000000020200000000000000\
             010f00000000000000\
             01fdffffffffffffff\
             0000000000\
             0001000000\
             1e00000000000000000300000000000000"
                .to_owned()
                + "00000000"
        );
    }

    #[test]
    fn damaged_chunks_are_refused() {
        let bytes = encode_channel(&content(), &schema().columns());
        let whole = [8, bytes.len()];
        for end in (0..bytes.len()).filter(|end| !whole.contains(end)) {
            let read = decode_channel(&bytes[..end], &schema());
            let cut_between = read.as_ref().is_ok_and(|read| read.elements.len() < 5);
            assert!(read.is_err() || cut_between, "{end}");
        }
        let mut other = bytes;
        other[8] = 9;
        assert_eq!(decode_channel(&other, &schema()).expect_err("no such element"), StateError::DamagedChunk);
    }
}
