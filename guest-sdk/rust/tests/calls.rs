//! Calls as the host makes them, with batches that fit and batches that do not.

use millstream::column::{Batch, Column, Values, VarValues};
use millstream::function::{Call, Function, MapCall, Opened, Origin, Outcome};
use millstream::{Columns, Input, Nullable, Output, Picked, Text};

#[derive(Input)]
struct Word<'a> {
    word: &'a str,
    count: Option<i64>,
}

#[derive(Output)]
struct Long<'a> {
    word: &'a str,
    letters: i64,
}

/// Keeps words of more than two letters.
#[millstream::map]
fn long<'a>(word: Word<'a>) -> Option<Long<'a>> {
    let letters = word.word.len() as i64 * word.count.unwrap_or(1);
    (word.word.len() > 2).then_some(Long { word: word.word, letters })
}

#[derive(Columns)]
struct Numbers {
    n: Vec<i64>,
    text: Nullable<Text>,
}

/// Keeps even numbers.
#[millstream::map(columns)]
fn even(numbers: Numbers) -> Picked<Numbers> {
    let rows: Vec<u32> = (0..).zip(&numbers.n).filter(|(_, n)| **n % 2 == 0).map(|(row, _)| row).collect();
    let n = rows.iter().map(|&row| numbers.n[row as usize]).collect();
    let mut text = VarValues::default();
    rows.iter().for_each(|&row| text.push(numbers.text.values.0.row(row as usize)));
    Picked { rows, columns: Numbers { n, text: Nullable { validity: None, values: Text(text) } } }
}

fn call<F: Function>(rows: Batch) -> Call {
    match F::open() {
        Ok(Opened::Map(mut function)) => function.apply(MapCall { rows, times: None }),
        Ok(other) => panic!("a {} function", other.kind()),
        Err(reason) => panic!("{reason}"),
    }
}

fn text(rows: &[&str]) -> Column {
    let mut values = VarValues::default();
    rows.iter().for_each(|row| values.push(row.as_bytes()));
    Values::Var(values).into()
}

fn refused<F: Function>(columns: Vec<Column>) -> String {
    call::<F>(Batch { rows: 2, columns }).expect_err("a batch that does not fit").to_string()
}

#[test]
fn rows_come_out_as_columns() {
    let counts = Column { validity: Some(vec![0b01]), values: Values::Int64(vec![2, 0]) };
    let Outcome { outputs, rejected } =
        call::<long>(Batch { rows: 2, columns: vec![text(&["word", "wörd"]), counts] })
            .expect("a batch that fits");
    assert!(rejected.is_empty());
    assert_eq!(outputs[0].origin, Origin::Each);
    assert_eq!(outputs[0].columns, [text(&["word", "wörd"]), Values::Int64(vec![8, 5]).into()]);
}

#[test]
fn nothing_emitted_is_no_output() {
    let counts = Values::Int64(vec![1, 1]).into();
    let outcome = call::<long>(Batch { rows: 2, columns: vec![text(&["a", "b"]), counts] });
    assert_eq!(outcome, Ok(Outcome::default()));
    let empty = call::<long>(Batch { rows: 0, columns: vec![text(&[]), Values::Int64(vec![]).into()] });
    assert_eq!(empty, Ok(Outcome::default()));
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let numbers = || Column::from(Values::Int64(vec![1, 2]));
    assert_eq!(refused::<long>(vec![text(&["a", "b"])]), "expected at least 2 columns, found 1");
    assert_eq!(
        refused::<long>(vec![numbers(), numbers()]),
        "expected a column of utf8, found one of int64 values"
    );
    assert_eq!(refused::<long>(vec![text(&["a"]), numbers()]), "expected a column of 2 rows, found 1");
    let invalid = Values::Var(VarValues { offsets: vec![0, 1, 2], bytes: vec![b'a', 0xff] }).into();
    assert_eq!(refused::<long>(vec![invalid, numbers()]), "a utf8 column holds invalid UTF-8 after byte 1");
}

#[test]
fn whole_columns_are_taken_and_given() {
    let texts = Column { validity: Some(vec![0b111]), ..text(&["a", "b", "c"]) };
    let batch = Batch { rows: 3, columns: vec![Values::Int64(vec![1, 2, 4]).into(), texts] };
    let outcome = call::<even>(batch).expect("a batch that fits");
    assert_eq!(outcome.outputs[0].origin, Origin::Picked(vec![1, 2]));
    assert_eq!(outcome.outputs[0].columns, [Values::Int64(vec![2, 4]).into(), text(&["b", "c"])]);
    assert_eq!(refused::<even>(vec![]), "expected at least 1 columns, found 0");
}
