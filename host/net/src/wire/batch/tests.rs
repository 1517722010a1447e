//! Rows that are written and read, and payloads that are none.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array,
    StringViewArray, TimestampMillisecondArray,
};
use bytes::Bytes;
use expect_test::expect;
use millstream_types::{Batch, Field, Positions, RecordNumbers, RecordUnit};
use proptest::prelude::*;

use super::*;
use crate::wire::frame::{FrameError, Header, Payload};

fn schema() -> Schema {
    Schema::new(DataType::ALL.map(|data_type| Field::nullable(data_type.name(), data_type)).to_vec())
}

type Row = (bool, i64, f64, String, Option<Vec<u8>>);

fn batch(rows: &[Row], times: Option<i64>) -> Batch {
    let all = |f: &dyn Fn(&Row) -> i64| rows.iter().map(f).collect::<Vec<_>>();
    let small = |f: &dyn Fn(&Row) -> i32| rows.iter().map(f).collect::<Vec<_>>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.4.as_ref().map(|_| row.0)))),
        Arc::new(Int32Array::from(small(&|row| row.1 as i32))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| (row.1 % 3 != 0).then_some(row.1)))),
        Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.2 as f32))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(TimestampMillisecondArray::from(all(&|row| row.1)).with_timezone("UTC")),
        Arc::new(Date32Array::from(small(&|row| row.1 as i32))),
        Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| &row.3))),
        Arc::new(BinaryViewArray::from_iter(rows.iter().map(|row| row.4.as_deref()))),
    ];
    let times =
        (0..rows.len() as i64).map(|row| times.map_or(millstream_types::NO_TIME, |first| first + row));
    Batch::new(&schema(), columns, times.collect()).expect("fits")
}

fn encoded(batch: &Batch) -> Bytes {
    let schema = schema();
    let encoder = Encoder::new(batch, &schema).expect("it has the schema");
    let length = encoder.length();
    let frame = encoder.encode(0, 0, false).concat();
    assert_eq!(frame.len(), Header::LENGTH + length as usize, "as long as was announced");
    Bytes::from(frame).slice(Header::LENGTH..)
}

fn decoded(payload: &Bytes) -> Result<Batch, FrameError> {
    // Cut into pieces, as packets are.
    decode(Payload::from(payload.chunks(7).map(Bytes::copy_from_slice).collect::<Vec<_>>()), &schema())
}

fn check(batch: &Batch) {
    let read = decoded(&encoded(batch)).expect("good");
    assert_eq!(read.records(), batch.records());
    assert_eq!(read.times(), batch.times());
    let positions = |batch: &Batch| batch.positions().map(|positions| positions.of(0));
    assert_eq!(positions(&read), positions(batch));
}

fn rows(count: usize) -> Vec<Row> {
    let text = |i: usize| "äb".repeat(i % 17);
    (0..count)
        .map(|i| (i % 2 == 0, i as i64, i as f64 / 3.0, text(i), (i % 5 != 0).then(|| vec![i as u8; i % 40])))
        .collect()
}

#[test]
fn rows_are_read_as_they_were_written() {
    for count in [0, 1, 7, 8, 9, 5000] {
        check(&batch(&rows(count), Some(-1)));
        check(&batch(&rows(count), None));
    }
    let whole = batch(&rows(5000), Some(3));
    check(&whole.slice(3, 1000));
    check(&whole.take(&vec![9, 4, 4, 4000].into()));
    let numbers = RecordNumbers::Even { first: 2, stride: 1, rows: 5000 };
    let positions = Positions::read("a.csv".into(), RecordUnit::Line, numbers);
    check(&whole.with_positions(Some(positions)).slice(70, 5));
}

#[test]
fn rows_without_columns_are_rows() {
    let schema = Schema::empty();
    let batch = Batch::new(&schema, Vec::new(), vec![4, 5].into()).expect("fits");
    let frame = Encoder::new(&batch, &schema).expect("no columns").encode(0, 0, false).concat();
    let payload = Payload::from(vec![Bytes::from(frame).slice(Header::LENGTH..)]);
    assert_eq!(decode(payload, &schema).expect("good").times()[..], [4, 5]);
}

#[test]
fn rows_of_another_schema_are_not_sent() {
    let other = Schema::new(vec![Field::new("a", DataType::Int64)]);
    let error = Encoder::new(&Batch::empty(), &other).map(|_| ()).expect_err("no columns");
    assert_eq!(error.to_string(), "the rows have the columns , and the edge has a int64");
}

#[test]
fn golden_bytes() {
    let schema = Schema::new(vec![Field::new("n", DataType::Int32), Field::nullable("t", DataType::Utf8)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, -1])),
        Arc::new(StringViewArray::from(vec![Some("one"), None])),
    ];
    let batch = Batch::new(&schema, columns, vec![7, 8].into()).expect("fits");
    let pieces = Encoder::new(&batch, &schema).expect("fits").encode(1, 2, false);
    let hex: String = pieces.concat().iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["0201000030000000020000000000000096ab32f1000000000800000002010200000103000700000000000000080000000000000001000000ffffffff0103000000000000006f6e65"].assert_eq(&hex);
}

#[test]
fn what_is_described_and_not_there_is_refused() {
    let schema = Schema::new(vec![Field::new("t", DataType::Utf8)]);
    let check = |description: Description, buffers: &[u8]| {
        let description = postcard::to_stdvec(&description).expect("encoded");
        let payload = [&(description.len() as u32).to_le_bytes()[..], &description, buffers].concat();
        decode(Payload::from(vec![Bytes::from(payload)]), &schema)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    let of = |rows, timed, bytes, nulls, columns| Description {
        rows,
        timed,
        columns: vec![ColumnDescription { nulls, bytes }; columns],
        positions: None,
    };
    let mut all = String::new();
    let mut add =
        |found: String| all += &format!("{}\n", found.rsplit_once("decoded: ").expect("a reason").1);
    add(check(of(u32::MAX, true, u32::MAX, true, 1), &[]));
    add(check(of(u32::MAX, false, 0, false, 1), &[]));
    add(check(of(1, false, 3, false, 2), &[3, 0, 0, 0, 97, 97, 97]));
    add(check(of(1, false, 3, false, 1), &[4, 0, 0, 0, 97, 97, 97]));
    add(check(of(1, false, 3, false, 1), &[2, 0, 0, 0, 97, 97, 97]));
    add(check(of(1, false, 3, false, 1), &[255, 255, 255, 255, 97, 97, 97]));
    add(check(of(1, false, 3, false, 1), &[3, 0, 0, 0, 97, 0xff, 97]));
    add(check(of(2, false, 2, false, 1), &[1, 0, 0, 0, 1, 0, 0, 0, 0xc3, 0xa4]));
    add(check(of(1, false, 1, true, 1), &[0, 1, 0, 0, 0, 97]));
    add(check(of(1, false, 0, true, 1), &[0, 0, 0, 0, 0]));
    add(check(of(1, false, 3, false, 1), &[3, 0, 0, 0, 97, 97, 97, 97]));
    expect![[r#"
        0 bytes of buffers, and 56371445747 are described
        4294967295 rows without event times
        2 columns, and the channel has 1
        column `t`: the values end before that of row 0
        column `t`: 1 bytes belong to no row
        column `t`: the values end before that of row 0
        column `t`: no UTF-8: invalid utf-8 sequence of 1 bytes from index 1
        column `t`: no UTF-8: row 1 begins within a character
        column `t`: row 0 has no value, and one of 1 bytes
        the columns do not fit the schema (t): Invalid argument error: Column 't' is declared as non-nullable but contains null values
        8 bytes of buffers, and 7 are described
    "#]].assert_eq(&all);
    let short = decode(Payload::from(vec![Bytes::from_static(&[1, 2])]), &schema);
    assert!(short.is_err());
    let short = decode(Payload::from(vec![Bytes::from_static(&[9, 0, 0, 0, 1])]), &schema);
    assert!(short.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_are_read_as_they_were_written(
        rows in proptest::collection::vec(any::<Row>(), 0..40), time in any::<Option<i32>>(), from in 0usize..40
    ) {
        let whole = batch(&rows, time.map(i64::from));
        let from = from.min(whole.rows());
        check(&whole.slice(from, whole.rows() - from));
    }

    #[test]
    fn damage_is_an_error_or_other_rows_and_never_a_panic(
        count in 0usize..20, position in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<bool>()
    ) {
        let mut payload = encoded(&batch(&rows(count), Some(1))).to_vec();
        let position = position.index(payload.len());
        if cut { payload.truncate(position) } else { payload[position] ^= 1 << bit }
        if let Ok(read) = decoded(&Bytes::from(payload)) {
            prop_assert!(!cut);
            // Whatever it is, it can be looked at.
            let shown = format!("{:?}", read.records());
            prop_assert!(!shown.is_empty());
        }
    }
}
