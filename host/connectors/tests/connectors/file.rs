//! The `file` source and sink.

use std::{fs, io::Write, path::Path};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Found, read, schema, sink, source, write};

fn read_files(folder: &Path, options: Value, columns: &[(&str, &str)]) -> Found {
    read(&*source("file", options, columns, folder)).expect("readable")
}

fn check(text: &str, options: Value, columns: &[(&str, &str)], expected: Expect) {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in"), text).expect("written");
    let mut options = options;
    options["path"] = "in".into();
    let found = read_files(folder.path(), options, columns);
    assert_eq!(found.bad, []);
    expected.assert_eq(&found.shown());
}

#[test]
fn the_flights_of_january() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let columns = [
        ("time_hour", "timestamp"),
        ("carrier", "utf8"),
        ("flight", "int32"),
        ("tailnum", "utf8?"),
        ("dep_delay", "float64?"),
    ];
    let options = json!({"path": "flights-2013-01.csv.gz", "format": {"csv": {"null": "NA"}}});
    let found = read_files(&data, options, &columns);
    let rows = found.rows();
    assert_eq!(rows.len(), 27_004);
    assert_eq!(
        rows[0],
        r#"{"time_hour":"2013-01-01T10:00:00Z","carrier":"UA","flight":1545,"tailnum":"N14228","dep_delay":2.0}"#
    );
    assert_eq!(rows.iter().filter(|row| !row.contains("dep_delay")).count(), 521);
    assert_eq!(rows.iter().filter(|row| !row.contains("tailnum")).count(), 155);
    assert!(found.bad.is_empty());
}

#[test]
fn csv_columns_are_found_by_name() {
    check(
        "\u{feff}id,name,unread,price\n1,\"a, \"\"b\"\"\nc\",x,1.5\r\n\n2,,y,\n",
        json!({"format": "csv"}),
        &[("price", "float64?"), ("name", "utf8"), ("id", "int64")],
        expect![[r#"
            {"price":1.5,"name":"a, \"b\"\nc","id":1}
            {"name":"","id":2}
        "#]],
    );
}

#[test]
fn csv_fields_that_are_empty_or_missing() {
    let columns = [("n", "int32?"), ("text", "utf8?"), ("bytes", "binary?"), ("must", "utf8")];
    let text = "n,text,bytes,must\n1,,,\n\"\",\"\",\"\",\"\"\n,NULL,NULL,NULL\n";
    check(
        &text.replace("NULL", ""),
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
            {"n":1,"must":""}
            {"text":"","bytes":"","must":""}
            {"must":""}
        "#]],
    );
    check(
        &text.replace(",NULL\n", ",x\n"),
        json!({"format": {"csv": {"null": "NULL"}}}),
        &columns,
        expect![[r#"
            {"n":1,"text":"","bytes":"","must":""}
            {"text":"","bytes":"","must":""}
            {"must":"x"}
        "#]],
    );
}

#[test]
fn csv_without_header_goes_by_position() {
    check(
        "1|NULL|true\n-2|'x|y'|False",
        json!({"format": {"csv": {"header": false, "delimiter": "|", "quote": "'", "null": "NULL"}}}),
        &[("a", "int32"), ("b", "utf8?"), ("c", "boolean")],
        expect![[r#"
            {"a":1,"c":true}
            {"a":-2,"b":"x|y","c":false}
        "#]],
    );
}

#[test]
fn json_columns_are_found_by_key() {
    check(
        "{\"b\":\"x\\u00e9\",\"a\":1,\"more\":[1,{}]}\n\n {\"a\":2.0,\"b\":{\"c\":[1,null,\"\\\"\"],\"d\":{}},\"t\":1357034400000}\r\n{\"a\":3,\"t\":\"2013-01-01\",\"x\":\"0aff\"}",
        json!({"format": "jsonl"}),
        &[("a", "int64"), ("b", "utf8?"), ("t", "timestamp?"), ("x", "binary?")],
        expect![[r#"
            {"a":1,"b":"xé"}
            {"a":2,"b":"{\"c\":[1,null,\"\\\"\"],\"d\":{}}","t":"2013-01-01T10:00:00Z"}
            {"a":3,"t":"2013-01-01T00:00:00Z","x":"0aff"}
        "#]],
    );
}

#[test]
fn files_come_in_natural_order_of_their_names() {
    let folder = tempdir().expect("a folder");
    for name in ["log-10.jsonl", "log-9.jsonl", "log-1.jsonl", ".log-2.jsonl", "other.txt"] {
        fs::write(folder.path().join(name), format!("{{\"name\":\"{name}\"}}\n")).expect("written");
    }
    let found =
        read_files(folder.path(), json!({"path": "log-*.jsonl", "format": "jsonl"}), &[("name", "utf8")]);
    assert_eq!(
        found.rows(),
        [r#"{"name":"log-1.jsonl"}"#, r#"{"name":"log-9.jsonl"}"#, r#"{"name":"log-10.jsonl"}"#]
    );
}

#[test]
fn compressed_files_are_one_split() {
    let folder = tempdir().expect("a folder");
    let text = "a\n".to_owned() + &"12345\n".repeat(300_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("compressed");
    fs::write(folder.path().join("x.csv.gz"), gzip.finish().expect("compressed")).expect("written");
    fs::write(folder.path().join("y"), zstd::encode_all(text.as_bytes(), 1).expect("compressed"))
        .expect("written");
    for options in [
        json!({"path": "x.csv.gz", "format": "csv", "split-size": "1KB"}),
        json!({"path": "y", "format": "csv", "compression": "zstd"}),
    ] {
        let found = read_files(folder.path(), options, &[("a", "int32")]);
        assert_eq!((found.splits.len(), found.rows().len()), (1, 300_000));
        assert!(found.batches.iter().all(|batch| batch.rows() <= 8192));
    }
}

#[test]
fn a_row_of_16_mb_is_a_row() {
    let folder = tempdir().expect("a folder");
    let long = "x".repeat(16 << 20);
    fs::write(folder.path().join("a.csv"), format!("a,b\n1,\"{long}\"\n2,y\n")).expect("written");
    fs::write(
        folder.path().join("a.jsonl"),
        format!("{{\"a\":1,\"b\":\"{long}\"}}\n{{\"a\":2,\"b\":\"y\"}}\n"),
    )
    .expect("written");
    for (path, format) in [("a.csv", "csv"), ("a.jsonl", "jsonl")] {
        let found = read_files(
            folder.path(),
            json!({"path": path, "format": format}),
            &[("a", "int32"), ("b", "utf8")],
        );
        let lengths: Vec<_> = found.rows().iter().map(String::len).collect();
        assert_eq!(lengths, [(16 << 20) + 14, 15]);
    }
}

#[test]
fn what_the_sink_writes_the_source_reads() {
    let columns = [
        ("t", "timestamp"),
        ("day", "date?"),
        ("flag", "boolean?"),
        ("small", "int32?"),
        ("large", "int64"),
        ("single", "float32?"),
        ("double", "float64?"),
        ("text", "utf8?"),
        ("bytes", "binary?"),
    ];
    let folder = tempdir().expect("a folder");
    let rows = [
        r#"{"t":"2013-01-01T10:00:00.250Z","day":"2013-01-02","flag":true,"small":-1,"large":9223372036854775807,"single":1.5,"double":0.1,"text":"a \"b\",\nc é","bytes":"00ff"}"#,
        r#"{"t":"1969-12-31T23:59:59.999Z","large":-9223372036854775808}"#,
        r#"{"t":"9999-12-31T23:59:59.999Z","day":"0001-01-01","flag":false,"small":2147483647,"large":0,"single":-1e30,"double":1e-300,"text":"x","bytes":"61626364656667686970717273747576"}"#,
    ];
    fs::write(folder.path().join("in.jsonl"), rows.join("\n")).expect("written");
    let original = read_files(folder.path(), json!({"path": "in.jsonl", "format": "jsonl"}), &columns);
    assert_eq!(original.rows().len(), 3, "{}", original.shown());
    for format in [
        json!("csv"),
        json!("jsonl"),
        json!("parquet"),
        json!({"csv": {"null": "\\N", "delimiter": "\t", "header": false}}),
    ] {
        for compression in [None, Some("gzip"), Some("zstd")] {
            let mut options = json!({"path": "out", "format": format});
            if let Some(compression) = compression.filter(|_| format != "parquet") {
                options["compression"] = compression.into();
            }
            let sink = sink("file", options, folder.path());
            write(&*sink, &schema(&columns), &original.batches).expect("written");
            let again = read_files(folder.path(), json!({"path": "out", "format": format}), &columns);
            assert_eq!(again.shown(), original.shown(), "{format} {compression:?}");
        }
    }
}

#[test]
fn parquet_tells_its_columns_itself() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n").expect("written");
    let columns = [("a", "int32"), ("b", "utf8?")];
    let original = read_files(folder.path(), json!({"path": "in.jsonl", "format": "jsonl"}), &columns);
    write(
        &*sink("file", json!({"path": "out", "format": "parquet"}), folder.path()),
        &schema(&columns),
        &original.batches,
    )
    .expect("written");
    let inferred = source("file", json!({"path": "out", "format": "parquet"}), &[], folder.path());
    assert_eq!(inferred.outputs()[0].1, schema(&columns));
    let widened = read_files(folder.path(), json!({"path": "out", "format": "parquet"}), &[("a", "int64")]);
    assert_eq!(widened.rows(), [r#"{"a":1}"#, r#"{"a":2}"#]);
}

#[test]
fn a_run_replaces_the_parts_of_the_last_one() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), "{\"a\":1}\n").expect("written");
    let columns = [("a", "int32")];
    let batches = read_files(folder.path(), json!({"path": "in.jsonl", "format": "jsonl"}), &columns).batches;
    let run = |mode: Option<&str>| {
        let mut options = json!({"path": "out", "format": "jsonl"});
        if let Some(mode) = mode {
            options["mode"] = mode.into();
        }
        let result = write(&*sink("file", options, folder.path()), &schema(&columns), &batches);
        let parts = fs::read_dir(folder.path().join("out")).expect("a folder").count();
        (result.map_err(|e| e.to_string()), parts)
    };
    assert_eq!(run(None), (Ok(()), 1));
    fs::write(folder.path().join("out/notes.txt"), "mine").expect("written");
    fs::write(folder.path().join("out/.part-0123abcd-0-0.jsonl"), "left by a crash").expect("written");
    assert_eq!(run(None), (Ok(()), 2), "the part and the notes");
    assert_eq!(run(Some("append")), (Ok(()), 3));
    let (result, parts) = run(Some("fail-if-exists"));
    let message = result.expect_err("refused");
    assert!(message.contains("of an earlier run, and the sink's mode is \"fail-if-exists\""), "{message}");
    assert_eq!(parts, 3);
}

#[test]
fn parts_roll_at_their_size_and_an_unfinished_one_leaves_nothing() {
    use millstream_operator::Sink;
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), "{\"a\":1}\n").expect("written");
    let columns = [("a", "int32")];
    let batch =
        read_files(folder.path(), json!({"path": "in.jsonl", "format": "jsonl"}), &columns).batches.remove(0);
    let sink = sink("file", json!({"path": "out", "format": "parquet", "roll-size": 1}), folder.path());
    write(&*sink, &schema(&columns), &[batch.clone(), batch.clone(), batch.clone()]).expect("written");
    let count = || fs::read_dir(folder.path().join("out")).expect("a folder").count();
    assert_eq!(count(), 3);
    let endless = crate::support::sink(
        "file",
        json!({"path": "out", "format": "csv", "mode": "append"}),
        folder.path(),
    );
    let mut writer =
        Sink::writer(&*endless, &schema(&columns), &crate::support::context(0, 1)).expect("a writer");
    crate::support::block_on(writer.write(batch)).expect("written");
    assert_eq!(count(), 4);
    drop(writer);
    assert_eq!(count(), 3);
}

#[test]
fn new_files_are_found_while_watching() {
    use millstream_operator::{Assignment, Boundedness};
    let folder = tempdir().expect("a folder");
    let source = source(
        "file",
        json!({"path": "*.jsonl", "format": "jsonl", "watch": "20ms"}),
        &[("a", "int32")],
        folder.path(),
    );
    assert_eq!(source.boundedness(), Boundedness::Unbounded);
    let mut enumerator = source.enumerator(1).expect("an empty folder will do");
    assert!(matches!(enumerator.next_split(0), Ok(Assignment::Later(_))));
    fs::write(folder.path().join("1.jsonl"), "{\"a\":1}\n").expect("written");
    std::thread::sleep(std::time::Duration::from_millis(25));
    assert!(
        matches!(enumerator.next_split(0), Ok(Assignment::Splits(splits)) if splits[0].id.contains("1.jsonl"))
    );
    assert!(matches!(enumerator.next_split(0), Ok(Assignment::Later(_))));
}

/// The row of each place.
fn places(found: &Found, folder: &Path) -> Vec<String> {
    let of = |batch: &millstream_types::Batch| {
        let positions = batch.positions().expect("what was read stands somewhere").clone();
        (0..batch.rows())
            .map(move |row| crate::support::without_folder(&positions.of(row), folder))
            .collect::<Vec<_>>()
    };
    let places = found.batches.iter().flat_map(of);
    places.zip(found.rows()).map(|(place, row)| format!("{place} {row}")).collect()
}

#[test]
fn every_row_has_its_place() {
    let folder = tempdir().expect("a folder");
    let columns = [("n", "int32")];
    let files = [
        ("even.csv", "n,t\n1,\n2,\n3,"),
        ("uneven.csv", "\n\nn,t\n1,\n2,\"a\nb\"\n\n3,\n"),
        ("bad.csv", "n,t\n1,\nx,\n3,\n"),
        ("rows.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":\"3\"}\n{\"n\":4}\n"),
    ];
    let mut all = Vec::new();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
        let format = name.rsplit('.').next();
        for split_size in [4, 1000] {
            let options = json!({"path": name, "format": format, "split-size": split_size});
            let found = places(&read_files(folder.path(), options, &columns), folder.path());
            all.push(found.join("; "));
        }
    }
    let rows = read_files(folder.path(), json!({"path": "rows.jsonl", "format": "jsonl"}), &[("n", "int32")]);
    let parquet = sink("file", json!({"path": "p", "format": "parquet"}), folder.path());
    write(&*parquet, &schema(&columns), &rows.batches).expect("written");
    let found = read_files(folder.path(), json!({"path": "p", "format": "parquet"}), &columns);
    let parquet = places(&found, folder.path()).join("; ");
    let name = parquet.split(':').next().unwrap_or_default().to_owned();
    all.push(parquet.replace(&name, "p.parquet"));
    expect![[r#"
        even.csv:2 {"n":1}; even.csv:3 {"n":2}; even.csv:4 {"n":3}
        even.csv:2 {"n":1}; even.csv:3 {"n":2}; even.csv:4 {"n":3}
        uneven.csv:4 {"n":1}; uneven.csv:5 {"n":2}; uneven.csv:8 {"n":3}
        uneven.csv:4 {"n":1}; uneven.csv:5 {"n":2}; uneven.csv:8 {"n":3}
        bad.csv:2 {"n":1}; bad.csv:4 {"n":3}
        bad.csv:2 {"n":1}; bad.csv:4 {"n":3}
        rows.jsonl:1 {"n":1}; rows.jsonl:2 {"n":2}; rows.jsonl:4 {"n":4}
        rows.jsonl:1 {"n":1}; rows.jsonl:2 {"n":2}; rows.jsonl:4 {"n":4}
        p.parquet: row 1 {"n":1}; p.parquet: row 2 {"n":2}; p.parquet: row 3 {"n":4}"#]]
    .assert_eq(&all.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn splits_of_any_size_have_the_same_rows(
        texts in prop::collection::vec("[a,\"\n\r ]{0,12}", 1..60),
        split_size in 1_usize..200,
        crlf: bool,
    ) {
        let folder = tempdir().expect("a folder");
        let line_break = if crlf { "\r\n" } else { "\n" };
        let quote = |text: &String| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = texts.iter().enumerate().map(|(i, text)| format!("{i},{}{line_break}", quote(text)));
        fs::write(folder.path().join("x.csv"), format!("n,text{line_break}") + &rows.collect::<String>()).expect("written");
        let rows = texts.iter().enumerate().map(|(i, text)| json!({"n": i, "text": text}).to_string() + line_break);
        fs::write(folder.path().join("x.jsonl"), rows.collect::<String>()).expect("written");
        let expected: Vec<_> = texts.iter().enumerate().map(|(i, text)| json!({"n": i, "text": text}).to_string()).collect();
        for (path, format) in [("x.csv", "csv"), ("x.jsonl", "jsonl")] {
            let options = json!({"path": path, "format": format, "split-size": split_size});
            let found = read_files(folder.path(), options, &[("n", "int32"), ("text", "utf8")]);
            prop_assert_eq!(found.rows(), expected.clone());
            prop_assert!(found.bad.is_empty());
            prop_assert!(split_size > 20 || found.splits.len() * 4 >= texts.len());
        }
    }
}
