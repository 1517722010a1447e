//! What is said of rows that cannot be read: each is one bad row with its position, what was found and what was
//! expected, and the rows around it are read.

use std::fs;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use tempfile::tempdir;

use crate::support::{check_file, read, source, without_folder};

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
fn numbers_that_are_too_large() {
    let columns = [("f", "float64"), ("g", "float32")];
    check_csv(
        "f,g\n1e308,1e38\n1e999,1\n1,1e39\n",
        &columns,
        expect![[r#"
            {"f":1.0e308,"g":1.0e38}
            in.csv:3
                column `f`: found `1e999`, expected float64
                1e999,1
            in.csv:4
                column `g`: found `1e39`, expected float32
                1,1e39
        "#]],
    );
    check_json(
        "{\"f\":1,\"g\":2}\n{\"f\":-1e400,\"g\":1}\n",
        &columns,
        expect![[r#"
            {"f":1.0,"g":2.0}
            in.jsonl:2
                column `f`: found `-1e400`, expected float64
                {"f":-1e400,"g":1}
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
