//! What is said of input that cannot be read: each piece is one bad row with its position, what was found and what was
//! expected, and the rows around it are read; what concerns a whole file is an error that names it.

use std::{fs, io::Write};

use expect_test::{Expect, expect};
use millstream_connectors::Connectors;
use millstream_operator::Whose;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{read, source, without_folder};

/// Reads a file of these bytes; rows first, then what was bad, or the error.
fn check_file(name: &str, bytes: &[u8], options: Value, columns: &[(&str, &str)], expected: Expect) {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join(name), bytes).expect("written");
    let mut options = options;
    options["path"] = name.into();
    let source = source("file", options, columns, folder.path());
    let shown = match read(&*source) {
        Ok(found) => found.shown(),
        Err(error) => format!("{:?}: {error}\n", error.whose),
    };
    expected.assert_eq(&without_folder(&shown, folder.path()));
}

fn check_csv(text: impl AsRef<[u8]>, columns: &[(&str, &str)], expected: Expect) {
    check_file("in.csv", text.as_ref(), json!({"format": "csv"}), columns, expected);
}

fn check_json(text: impl AsRef<[u8]>, columns: &[(&str, &str)], expected: Expect) {
    check_file("in.jsonl", text.as_ref(), json!({"format": "jsonl"}), columns, expected);
}

#[test]
fn csv_rows_with_another_number_of_fields() {
    check_csv(
        "a,b\n1,x\n2\n3,y,z\n4,\"w\nv\"\n",
        &[("a", "int32"), ("b", "utf8")],
        expect![[r#"
            {"a":1,"b":"x"}
            {"a":4,"b":"w\nv"}
            in.csv:3
                found 1 field, expected 2
                2
            in.csv:4
                found 3 fields, expected 2
                3,y,z
        "#]],
    );
}

#[test]
fn csv_values_of_a_wrong_type() {
    let text = "i,l,f,b,d,t,x\n\
        1,2,3,true,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        1.5,2,3,true,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        2147483648,2,3,true,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        1,9223372036854775808,3,true,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        1,2,three,true,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        1,2,3,yes,2013-01-01,2013-01-01T00:00:00Z,ff\n\
        1,2,3,true,2013-02-30,2013-01-01T00:00:00Z,ff\n\
        1,2,3,true,2013-01-01,2013-01-01T25:00:00Z,ff\n\
        1,2,3,true,2013-01-01,2013-01-01T00:00:00Z,fg\n\
        ,x,3,true,2013-01-01,2013-01-01T00:00:00Z,ff\n";
    let columns = [
        ("i", "int32"),
        ("l", "int64"),
        ("f", "float64"),
        ("b", "boolean"),
        ("d", "date"),
        ("t", "timestamp"),
        ("x", "binary"),
    ];
    check_csv(
        text,
        &columns,
        expect![[r#"
        {"i":1,"l":2,"f":3.0,"b":true,"d":"2013-01-01","t":"2013-01-01T00:00:00Z","x":"ff"}
        in.csv:3
            column `i`: found `1.5`, expected int32
            1.5,2,3,true,2013-01-01,2013-01-01T00:00:00Z,ff
        in.csv:4
            column `i`: found `2147483648`, expected int32
            2147483648,2,3,true,2013-01-01,2013-01-01T00:00:00Z,ff
        in.csv:5
            column `l`: found `9223372036854775808`, expected int64
            1,9223372036854775808,3,true,2013-01-01,2013-01-01T00:00:00Z,ff
        in.csv:6
            column `f`: found `three`, expected float64
            1,2,three,true,2013-01-01,2013-01-01T00:00:00Z,ff
        in.csv:7
            column `b`: found `yes`, expected boolean
            1,2,3,yes,2013-01-01,2013-01-01T00:00:00Z,ff
        in.csv:8
            column `d`: found `2013-02-30`, expected date (such as 2013-01-31)
            1,2,3,true,2013-02-30,2013-01-01T00:00:00Z,ff
        in.csv:9
            column `t`: found `2013-01-01T25:00:00Z`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            1,2,3,true,2013-01-01,2013-01-01T25:00:00Z,ff
        in.csv:10
            column `x`: found `fg`, expected binary (hexadecimal digits)
            1,2,3,true,2013-01-01,2013-01-01T00:00:00Z,fg
        in.csv:11
            column `i`: found no value, expected int32 (`int32?` in the schema would allow that)
            ,x,3,true,2013-01-01,2013-01-01T00:00:00Z,ff
    "#]],
    );
}

#[test]
fn timestamps_out_of_range() {
    let columns = [("t", "timestamp")];
    let text = "t\n10000-01-01T00:00:00Z\n253402300799999\n253402300800000\n-9223372036854775808\n99999999999999999999\n";
    check_csv(
        text,
        &columns,
        expect![[r#"
        {"t":"9999-12-31T23:59:59.999Z"}
        in.csv:2
            column `t`: found `10000-01-01T00:00:00Z`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            10000-01-01T00:00:00Z
        in.csv:4
            column `t`: found `253402300800000`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            253402300800000
        in.csv:5
            column `t`: found `-9223372036854775808`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            -9223372036854775808
        in.csv:6
            column `t`: found `99999999999999999999`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            99999999999999999999
    "#]],
    );
    let text = "{\"t\":253402300800000}\n{\"t\":1e300}\n{\"t\":\"2013-01-32\"}\n{\"t\":-62135596800000}\n{\"t\":true}\n";
    check_json(
        text,
        &columns,
        expect![[r#"
        {"t":"0001-01-01T00:00:00Z"}
        in.jsonl:1
            column `t`: found `253402300800000`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            {"t":253402300800000}
        in.jsonl:2
            column `t`: found `1e300`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            {"t":1e300}
        in.jsonl:3
            column `t`: found `"2013-01-32"`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            {"t":"2013-01-32"}
        in.jsonl:5
            column `t`: found `true`, expected timestamp (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)
            {"t":true}
    "#]],
    );
}

#[test]
fn csv_quotes_in_wrong_places() {
    let columns = [("a", "int32"), ("b", "utf8")];
    check_csv(
        "a,b\n1,\"x\"y\n2,x\"y\"\n3,\"\"\"\"\n",
        &columns,
        expect![[r#"
        {"a":2,"b":"x\"y\""}
        {"a":3,"b":"\""}
        in.csv:2
            text behind a closing quote: expected a delimiter or the end of the row
            1,"x"y
    "#]],
    );
    check_csv(
        "a,b\n1,x\n2,\"open\n3,y\n4,z",
        &columns,
        expect![[r#"
        {"a":1,"b":"x"}
        {"a":3,"b":"y"}
        {"a":4,"b":"z"}
        in.csv:3
            a quote is opened here and not closed before the end of the file
            2,"open
    "#]],
    );
    check_csv(
        "a,\"b\n1,x\n",
        &columns,
        expect![[r#"
        User: in.csv:1: the header cannot be read: a quote is opened here and not closed before the end of the file
    "#]],
    );
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
fn json_lines_that_are_none() {
    let text = "{\"a\":1}\n{\"a\":\n2}\n{\"a\":3}{\"a\":4}\n[5]\n6\n{\"a\":7,}\n{\"a\" 8}\nnull\n{\"a\":9\n";
    check_json(
        text,
        &[("a", "int32")],
        expect![[r#"
            {"a":1}
            {"a":7}
            in.jsonl:2
                not JSON: EOF while parsing a value at byte 5 of the row; expected an object
                {"a":
            in.jsonl:3
                not JSON: trailing characters at byte 2 of the row; expected an object
                2}
            in.jsonl:4
                not JSON: trailing characters at byte 8 of the row; expected an object
                {"a":3}{"a":4}
            in.jsonl:5
                found `[5]`, expected an object with a key for each column
                [5]
            in.jsonl:6
                found `6`, expected an object with a key for each column
                6
            in.jsonl:8
                not JSON: expected `:` at byte 6 of the row; expected an object
                {"a" 8}
            in.jsonl:9
                found `null`, expected an object with a key for each column
                null
            in.jsonl:10
                not JSON: EOF while parsing an object at byte 6 of the row; expected an object
                {"a":9
        "#]],
    );
}

#[test]
fn json_values_of_a_wrong_type() {
    let text = "{\"i\":1,\"s\":\"x\"}\n{\"i\":\"1\",\"s\":\"x\"}\n{\"i\":1.5,\"s\":\"x\"}\n{\"i\":2147483648,\"s\":\"x\"}\n\
        {\"i\":{\"n\":[1]},\"s\":\"x\"}\n{\"i\":1,\"s\":2}\n{\"i\":1,\"s\":true}\n{\"i\":1,\"s\":\"x\",\"b\":1}\n{\"i\":1,\"s\":\"x\",\"f\":\"1\"}\n";
    check_json(
        text,
        &[("i", "int32"), ("s", "utf8"), ("b", "boolean?"), ("f", "float32?")],
        expect![[r#"
            {"i":1,"s":"x"}
            in.jsonl:2
                column `i`: found `"1"`, expected int32
                {"i":"1","s":"x"}
            in.jsonl:3
                column `i`: found `1.5`, expected int32
                {"i":1.5,"s":"x"}
            in.jsonl:4
                column `i`: found `2147483648`, expected int32
                {"i":2147483648,"s":"x"}
            in.jsonl:5
                column `i`: found `{"n":[1]}`, expected int32
                {"i":{"n":[1]},"s":"x"}
            in.jsonl:6
                column `s`: found `2`, expected utf8
                {"i":1,"s":2}
            in.jsonl:7
                column `s`: found `true`, expected utf8
                {"i":1,"s":true}
            in.jsonl:8
                column `b`: found `1`, expected boolean
                {"i":1,"s":"x","b":1}
            in.jsonl:9
                column `f`: found `"1"`, expected float32
                {"i":1,"s":"x","f":"1"}
        "#]],
    );
}

#[test]
fn rows_without_a_value_that_they_need() {
    let columns = [("a", "int32"), ("b", "utf8")];
    check_json(
        "{\"a\":1}\n{\"b\":\"x\"}\n{\"a\":null,\"b\":null}\n{}\n{\"a\":2,\"b\":\"\"}\n",
        &columns,
        expect![[r#"
            {"a":2,"b":""}
            in.jsonl:1
                column `b`: found no value, expected utf8 (`utf8?` in the schema would allow that)
                {"a":1}
            in.jsonl:2
                column `a`: found no value, expected int32 (`int32?` in the schema would allow that)
                {"b":"x"}
            in.jsonl:3
                column `a`: found no value, expected int32 (`int32?` in the schema would allow that)
                {"a":null,"b":null}
            in.jsonl:4
                column `a`: found no value, expected int32 (`int32?` in the schema would allow that)
                {}
        "#]],
    );
    let options = json!({"format": {"csv": {"null": "NA"}}});
    check_file(
        "in.csv",
        b"a,b\n1,NA\nNA,x\n,x\n2,\n",
        options,
        &columns,
        expect![[r#"
        {"a":2,"b":""}
        in.csv:2
            column `b`: found no value, expected utf8 (`utf8?` in the schema would allow that)
            1,NA
        in.csv:3
            column `a`: found no value, expected int32 (`int32?` in the schema would allow that)
            NA,x
        in.csv:4
            column `a`: found no value, expected int32 (`int32?` in the schema would allow that)
            ,x
    "#]],
    );
}

#[test]
fn invalid_utf_8() {
    let columns = [("a", "utf8"), ("b", "utf8")];
    check_csv(
        b"a,b\nx,y\nx,\xFFy\n\xC3,\xA9\n\xC3\xA9,z\n",
        &columns,
        expect![[r#"
        {"a":"x","b":"y"}
        {"a":"é","b":"z"}
        in.csv:3
            invalid UTF-8 at byte 3 of the row
            x,�y
        in.csv:4
            invalid UTF-8 at byte 1 of the row
            �,�
    "#]],
    );
    check_json(
        b"{\"a\":\"x\",\"b\":\"\xFF\"}\n{\"a\":\"x\",\"b\":\"\\ud800\"}\n{\"a\":\"x\",\"b\":\"y\"}\n",
        &columns,
        expect![[r#"
            {"a":"x","b":"y"}
            in.jsonl:1
                invalid UTF-8 at byte 15 of the row
                {"a":"x","b":"�"}
            in.jsonl:2
                not JSON: unexpected end of hex escape at byte 21 of the row; expected an object
                {"a":"x","b":"\ud800"}
        "#]],
    );
}

#[test]
fn rows_that_are_too_long() {
    let folder = tempdir().expect("a folder");
    let long = "x".repeat((64 << 20) + 1);
    let shown = |name: &str, text: String, format: &str| {
        fs::write(folder.path().join(name), text).expect("written");
        let found =
            read(&*source("file", json!({"path": name, "format": format}), &[("a", "int32")], folder.path()))
                .expect("readable");
        without_folder(&found.shown(), folder.path()).replace(&"x".repeat(150), "x")
    };
    expect![[r#"
        {"a":1}
        {"a":3}
        a.jsonl:2
            the row is longer than the 64 MiB that it may have
            {"a":2,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    "#]]
    .assert_eq(&shown(
        "a.jsonl",
        format!("{{\"a\":1}}\n{{\"a\":2,\"b\":\"{long}\"}}\n{{\"a\":3}}\n"),
        "jsonl",
    ));
    expect![[r#"
        {"a":1}
        {"a":3}
        {"a":5}
        {"a":6}
        a.csv:3
            the row is longer than the 64 MiB that it may have
            2,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        a.csv:5
            the row is longer than the 64 MiB that it may have
            4,"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        a.csv:7
            a quote is opened here and not closed before the end of the file
            "
    "#]]
    .assert_eq(&shown("a.csv", format!("a,b\n1,\n2,{long}\n3,\n4,\"{long}\n5,\n\"\n6,\n"), "csv"));
    expect![[r#"
        {"a":1}
        {"a":3}
        b.csv:3
            the row is longer than the 64 MiB that it may have
            2,"y
        b.csv:4
            the row is longer than the 64 MiB that it may have
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    "#]]
    .assert_eq(&shown("b.csv", format!("a,b\n1,\n2,\"y\n{long}\n3,\n"), "csv"));
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
    let mut damaged = bytes.clone();
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
    let schema = crate::support::schema(&[("a", "int32")]);
    let error =
        sink.writer(&schema, &crate::support::context(0, 1)).err().expect("no folder can be made there");
    assert_eq!(error.whose, Whose::External);
    expect!["taken/below: the folder cannot be used: Not a directory (os error 20)"]
        .assert_eq(&without_folder(&error.to_string(), folder.path()));
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
    let mut writer = sink.writer(&crate::support::schema(&columns), &context).expect("a writer");
    crate::support::block_on(writer.write(batch)).expect("written");
    fs::remove_dir_all(folder.path().join("out")).expect("removed");
    let error = crate::support::block_on(writer.finish()).expect_err("nowhere to put it");
    let message = without_folder(&error.to_string(), folder.path());
    assert!(
        message.starts_with("out/part-")
            && message
                .ends_with("-3-0.csv: cannot complete the file: No such file or directory (os error 2)"),
        "{message}"
    );
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever stands in a file, every line is a row or a bad one, in order, and the same ones are good alone.
    #[test]
    fn any_bytes_are_rows_or_bad_rows(lines in prop::collection::vec("[ -~]{0,10}|[0-9]{1,3}|\\{\"a\":[0-9]{1,3}\\}", 1..40)) {
        let folder = tempdir().expect("a folder");
        let path = folder.path().join("in.jsonl");
        let read_lines = |lines: &[String]| {
            fs::write(&path, lines.join("\n") + "\n").expect("written");
            read(&*source("file", json!({"path": "in.jsonl", "format": "jsonl"}), &[("a", "int32")], folder.path())).expect("readable")
        };
        let all = read_lines(&lines);
        let alone: Vec<_> = lines.iter().map(|line| read_lines(std::slice::from_ref(line))).collect();
        prop_assert_eq!(all.rows(), alone.iter().flat_map(|found| found.rows()).collect::<Vec<_>>());
        let reasons = |found: &crate::support::Found| found.bad.iter().map(|bad| bad.reason.clone()).collect::<Vec<_>>();
        prop_assert_eq!(reasons(&all), alone.iter().flat_map(reasons).collect::<Vec<_>>());
        let blank = lines.iter().filter(|line| line.trim().is_empty()).count();
        prop_assert_eq!(all.rows().len() + all.bad.len() + blank, lines.len());
    }
}
