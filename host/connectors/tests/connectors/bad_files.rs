//! What is said of files that are not as they should be, and of places where none can be written: an error that names
//! the file, what was found and what was expected.

use std::{fs, io::Write};

use expect_test::{Expect, expect};
use millstream_connectors::Connectors;
use millstream_operator::Whose;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{check_file, read, source, without_folder};

fn check_csv(text: impl AsRef<[u8]>, columns: &[(&str, &str)], expected: Expect) {
    check_file("in.csv", text.as_ref(), json!({"format": "csv"}), columns, expected);
}

fn check_json(text: impl AsRef<[u8]>, columns: &[(&str, &str)], expected: Expect) {
    check_file("in.jsonl", text.as_ref(), json!({"format": "jsonl"}), columns, expected);
}

#[test]
fn csv_headers() {
    let columns = [("a", "int32"), ("dep_delay", "float64?")];
    check_csv(
        "a,b,c\n1,2,3\n",
        &columns,
        expect![[r#"
        User: in.csv:1: no column `dep_delay`: the header has a, b, c; the schema expects a, dep_delay
    "#]],
    );
    check_csv(
        "a,dep_delay,a\n1,2,3\n",
        &columns,
        expect![[r#"
        User: in.csv:1: more than one column `a`: the header has a, dep_delay, a; the schema expects a, dep_delay
    "#]],
    );
    check_csv(
        b"a,\xFF\n1,2\n",
        &columns,
        expect![[r#"
        User: in.csv:1: the header cannot be read: invalid utf-8 sequence of 1 bytes from index 2
    "#]],
    );
    check_csv(
        "a, dep_delay\n1,2\n",
        &columns,
        expect![[r#"
        {"a":1,"dep_delay":2.0}
    "#]],
    );
}

#[test]
fn files_without_rows() {
    let columns = [("a", "int32")];
    check_csv("", &columns, expect![[r#""#]]);
    check_csv("\n\r\n", &columns, expect![[r#""#]]);
    check_csv("a\n", &columns, expect![[r#""#]]);
    check_json("", &columns, expect![[r#""#]]);
    check_file(
        "in.csv.gz",
        b"",
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
        User: in.csv.gz: the compressed file ends too early: read up to line 1, then unexpected end of file; expected a complete gzip file
    "#]],
    );
    check_file(
        "in.parquet",
        b"",
        json!({"format": "parquet"}),
        &columns,
        expect![[r#"
        User: in.parquet: not a Parquet file: EOF: Parquet file too small. Size is 0 but need 8
    "#]],
    );
}

#[test]
fn compressed_files_that_are_cut_off_or_damaged() {
    let columns = [("a", "int32")];
    let text =
        "a\n1\n".to_owned() + &(0..100_000).map(|i| format!("{}\n", i * 7919 % 100_003)).collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("compressed");
    let gzip = gzip.finish().expect("compressed");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("compressed");
    check_file(
        "cut.csv.gz",
        &gzip[..gzip.len() / 2],
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
            User: cut.csv.gz: the compressed file ends too early: read up to line 50009, then incomplete deflate stream; expected a complete gzip file
        "#]],
    );
    check_file(
        "cut.csv.zst",
        &zstd[..zstd.len() / 2],
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
            User: cut.csv.zst: the compressed file ends too early: read up to line 44517, then incomplete frame; expected a complete zstd file
        "#]],
    );
    check_file(
        "plain.csv.gz",
        text.as_bytes(),
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
        User: plain.csv.gz: the compressed file is damaged: read up to line 1, then invalid gzip header; expected a complete gzip file
    "#]],
    );
    check_file(
        "more.csv.gz",
        &[&gzip[..], b"more"].concat(),
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
            User: more.csv.gz: the compressed file is damaged: read up to line 100003, then bytes that are no gzip behind the end of the compressed data; expected a complete gzip file
        "#]],
    );
    let mut damaged = gzip;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xFF);
    check_file(
        "damaged.csv.gz",
        &damaged,
        json!({"format": "csv"}),
        &columns,
        expect![[r#"
            User: damaged.csv.gz: the compressed file is damaged: read up to line 99665, then corrupt gzip stream does not have a matching checksum; expected a complete gzip file
        "#]],
    );
}

#[test]
fn parquet_files_that_do_not_fit() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n{\"a\":3,\"b\":\"y\"}\n")
        .expect("written");
    let columns = [("a", "int64"), ("b", "utf8?")];
    let original =
        read(&*source("file", json!({"path": "in.jsonl", "format": "jsonl"}), &columns, folder.path()))
            .expect("readable");
    let sink = Connectors::builtin()
        .sink("file", &json!({"path": "out", "format": "parquet"}), folder.path())
        .expect("good options");
    crate::support::write(&*sink, &crate::support::schema(&columns), &original.batches).expect("written");
    let part = fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .next()
        .expect("a part")
        .expect("a part")
        .path();
    let bytes = fs::read(part).expect("readable");
    let check = |bytes: &[u8], columns: &[(&str, &str)], expected| {
        check_file("in.parquet", bytes, json!({"format": "parquet"}), columns, expected);
    };
    check(
        &bytes,
        &[("b", "utf8"), ("a", "int64")],
        expect![[r#"
        {"b":"x","a":1}
        {"b":"y","a":3}
        in.parquet: row 2
            column `b`: found no value, expected utf8 (`utf8?` in the schema would allow that)
            a: 2, b: 
    "#]],
    );
    check(
        &bytes,
        &[("a", "int32")],
        expect![[r#"
        User: in.parquet: column `a`: found Int64, expected int32
    "#]],
    );
    check(
        &bytes,
        &[("c", "int32?")],
        expect![[r#"
        User: in.parquet: no column `c`: found a, b; the schema expects c
    "#]],
    );
    check(
        &bytes[..bytes.len() - 1],
        &columns,
        expect![[r#"
        User: in.parquet: not a Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    "#]],
    );
    check(
        b"a,b\n1,2\n",
        &columns,
        expect![[r#"
        User: in.parquet: not a Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    "#]],
    );
    let mut damaged = bytes;
    damaged[4..40].fill(0);
    check(
        &damaged,
        &columns,
        expect![[r#"
        User: in.parquet: from row 1: the Parquet file cannot be read: Parquet argument error: Parquet error: Required field type_ is missing
    "#]],
    );
}

#[test]
fn paths_that_name_nothing() {
    let folder = tempdir().expect("a folder");
    for path in ["nothing.csv", "*.csv", "no/folder/"] {
        let source = source("file", json!({"path": path, "format": "csv"}), &[("a", "int32")], folder.path());
        let error = source.enumerator(1).err().expect("nothing to read");
        assert_eq!(error.whose, Whose::User);
        let message = without_folder(&error.to_string(), folder.path());
        assert_eq!(message, format!("{path}: there is no such file, and no file matches it as a pattern"));
    }
}

#[test]
fn paths_that_name_no_files() {
    let folder = tempdir().expect("a folder");
    fs::create_dir(folder.path().join("empty")).expect("created");
    fs::write(folder.path().join("empty/_SUCCESS"), "").expect("written");
    let pipe = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(pipe.expect("mkfifo is there").success());
    let message = |path: &str| {
        let source = source("file", json!({"path": path, "format": "csv"}), &[("a", "int32")], folder.path());
        let error = source.enumerator(1).err().expect("nothing to read");
        assert_eq!(error.whose, Whose::User);
        without_folder(&error.to_string(), folder.path())
    };
    expect!["empty: the folder has no files to read (those that begin with `.` or `_` do not count)"]
        .assert_eq(&message("empty"));
    expect![
        "pipe: found a pipe, expected a file, a folder or a pattern: only files can be read in pieces and again"
    ]
    .assert_eq(&message("pipe"));
}

#[test]
fn a_sink_that_cannot_write() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("taken"), "").expect("written");
    let connectors = Connectors::builtin();
    let make = |path: &str| connectors.sink("file", &json!({"path": path, "format": "jsonl"}), folder.path());
    let error = make("taken").err().expect("a file is in the way");
    assert_eq!(error.key.as_deref(), Some("path"));
    expect!["taken: is a file; expected a folder, in which each subtask writes parts"]
        .assert_eq(&without_folder(&error.to_string(), folder.path()));
    let sink = make("taken/below").expect("it is seen when it is written");
    let error = sink.begin(&crate::support::BEGINNING).expect_err("no folder can be made there");
    assert_eq!(error.whose, Whose::External);
    expect!["taken/below: the folder cannot be used: Not a directory (os error 20)"]
        .assert_eq(&without_folder(&error.to_string(), folder.path()));
}

#[test]
fn a_folder_that_another_job_writes_into() {
    let folder = tempdir().expect("a folder");
    let make =
        || Connectors::builtin().sink("file", &json!({"path": "out", "format": "jsonl"}), folder.path());
    let (first, second) = (make().expect("good options"), make().expect("good options"));
    first.begin(&crate::support::BEGINNING).expect("nobody has it");
    first.begin(&crate::support::BEGINNING).expect("its own");
    let error = second.begin(&crate::support::BEGINNING).expect_err("the first has it");
    assert_eq!(error.whose, Whose::User);
    expect![
        "out: another job that runs writes into this folder: stop it, or give this one a folder of its own"
    ]
    .assert_eq(&without_folder(&error.to_string(), folder.path()));
    drop(first);
    second.begin(&crate::support::BEGINNING).expect("nobody has it");
}

#[test]
fn a_folder_that_goes_away() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("in.jsonl"), "{\"a\":1}\n").expect("written");
    let columns = [("a", "int32")];
    let options = json!({"path": "in.jsonl", "format": "jsonl"});
    let batch = read(&*source("file", options, &columns, folder.path())).expect("readable").batches.remove(0);
    let sink = Connectors::builtin().sink("file", &json!({"path": "out", "format": "csv"}), folder.path());
    let sink = sink.expect("good options");
    let context = crate::support::context(3, 4);
    sink.begin(&crate::support::BEGINNING).expect("a folder");
    let mut writer = sink.writer(&crate::support::schema(&columns), &context).expect("a writer");
    crate::support::block_on(writer.write(batch)).expect("written");
    fs::remove_dir_all(folder.path().join("out")).expect("removed");
    let error = crate::support::block_on(writer.finish()).expect_err("nowhere to put it");
    let message = without_folder(&error.to_string(), folder.path());
    let problem = "-3-0.csv: the part cannot be made visible: No such file or directory (os error 2)";
    assert!(message.starts_with("out/part-") && message.ends_with(problem), "{message}");
}

#[test]
fn options_of_files() {
    let check = |options: Value, expected: Expect| {
        let schema = crate::support::schema(&[("a", "int32")]);
        let error = Connectors::builtin()
            .source("file", &options, Some(schema), std::path::Path::new(""))
            .err()
            .expect("refused");
        expected.assert_eq(&format!("{}: {error}", error.key.as_deref().unwrap_or("-")));
    };
    check(json!({"path": "x"}), expect!["format: the connector `file` needs the option `format`"]);
    check(
        json!({"path": "x", "format": "cvs"}),
        expect!["format: `cvs` is not known here: did you mean `csv`?"],
    );
    check(
        json!({"path": "x", "format": {"csv": {"delimeter": ";"}}}),
        expect![
            "format.csv.delimeter: the connector `file` has no option `delimeter`: did you mean `delimiter`?"
        ],
    );
    check(
        json!({"path": "x", "format": {"csv": {"delimiter": ";;"}}}),
        expect![[r#"format.csv.delimiter: found ";;", expected one ASCII character"#]],
    );
    check(
        json!({"path": "x", "format": {"jsonl": {"null": ""}}}),
        expect!["format.jsonl.null: the connector `file` has no option `null`"],
    );
    check(
        json!({"path": "x", "format": 3}),
        expect![[
            r#"format: invalid type: integer `3`, expected "csv", "jsonl", "parquet" or a table such as { csv = { null = "NA" } }"#
        ]],
    );
    check(
        json!({"path": "x", "format": "csv", "compression": "lz4"}),
        expect!["compression: `lz4` is not known here: known are none, gzip, zstd"],
    );
    check(
        json!({"path": "x", "format": "parquet", "compression": "gzip"}),
        expect!["compression: Parquet files say themselves how they are compressed: leave `compression` out"],
    );
    check(
        json!({"path": "", "format": "csv"}),
        expect!["path: `path` is empty: expected a file, a folder or a pattern such as `logs/*.csv`"],
    );
    check(
        json!({"path": "a[", "format": "csv"}),
        expect![
            "path: `a[` is no pattern for files: Pattern syntax error near position 1: invalid range pattern"
        ],
    );
    let error = Connectors::builtin()
        .source("file", &json!({"path": "x", "format": "csv"}), None, std::path::Path::new(""))
        .err();
    expect![[r#"text files do not tell the types of their columns: give `schema = { column = "type" }`"#]]
        .assert_eq(&error.expect("refused").to_string());
}
