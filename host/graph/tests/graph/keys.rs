//! Keys and the streams that are one input.

use expect_test::expect;

use crate::support::{check, check_edited, edited, plan};

#[test]
fn key_columns() {
    check_edited(
        &[(r#"key = ["city"]"#, r#"key = ["town"]"#)],
        expect![[r#"
            refused
              × the key column `town` is not among the columns of `known`
                ╭─[jobs/job.toml:20:8]
             20 │ key = ["town"]
                ·        ───┬──
                ·           ╰── no such column
                ╰────
              help: its columns: at, city, line, fare, rides
        "#]],
    );
    check_edited(
        &[(r#"key = ["city"]"#, r#"key = ["city", "city"]"#)],
        expect![[r#"
            refused
              × the key names the column `city` twice
                ╭─[jobs/job.toml:20:16]
             20 │ key = ["city", "city"]
                ·                ───┬──
                ·                   ╰── again
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.by_line"
input = "trips"
key = ["city"]"#,
        )],
        expect![[r#"
            refused
              × the column `city` is utf8, `by_line` takes int64 for `line`
                ╭─[jobs/job.toml:16:8]
             16 │ key = ["city"]
                ·        ───┬──
                ·           ╰── utf8 where int64 was expected
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.by_line"
input = "trips"
key = ["line", "city"]"#,
        )],
        expect![[r#"
            refused
              × `by_line` has a key of 1 column (line int64), here are 2 columns
                ╭─[jobs/job.toml:16:7]
             16 │ key = ["line", "city"]
                ·       ────────┬───────
                ·               ╰── this key
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.by_line"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × `by_line` needs a key of 1 column (line int64)
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.by_line"
                ·            ─────┬─────
                ·                 ╰── has no key
                ╰────
              help: key = ["line"]
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.by_line"
input = "trips"
key = []"#,
        )],
        expect![[r#"
            refused
              × `by_line` needs a key of 1 column (line int64)
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.by_line"
                ·            ─────┬─────
                ·                 ╰── has no key
                ╰────
              help: key = ["line"]
        "#]],
    );
    check_edited(
        &[
            (r#"line = "int32""#, r#"line = "int32?""#),
            (
                r#"function = "m.known"
input = "trips""#,
                r#"function = "m.by_line"
input = "trips"
key = ["line"]"#,
            ),
        ],
        expect![[r#"
            refused
              × the column `line` may be null, `by_line` takes `line` without null
                ╭─[jobs/job.toml:16:8]
             16 │ key = ["line"]
                ·        ───┬──
                ·           ╰── may be null
                ╰────
              help: let the function take an optional value, or set `on-null = "reject"`: rows with null there are then
                    refused and follow `on-error`
        "#]],
    );
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
key = ["town"]"#,
        )],
        expect![[r#"
            refused
              × the key column `town` is not among the columns of `stats`
                ╭─[jobs/job.toml:24:8]
             24 │ key = ["town"]
                ·        ───┬──
                ·           ╰── no such column
                ╰────
              help: its columns: city, hour, count
        "#]],
    );
}

#[test]
fn who_needs_a_key() {
    let job = |function: &str| {
        edited(&[
            ("function = \"m.stats\"", function),
            ("key = [\"city\"]\nwindow = { tumbling = \"1h\", start = \"hour\" }\n", ""),
        ])
    };
    check(
        &job("function = \"m.tally\""),
        expect![[r#"
            refused
              × `tally` is a process function, which needs a key
                ╭─[jobs/job.toml:18:12]
             18 │ function = "m.tally"
                ·            ────┬────
                ·                ╰── has no key
                ╰────
              help: key = ["column"], or key = [] for one key over the whole stream
        "#]],
    );
    check(
        &job("function = \"m.sharded\""),
        expect![[r#"
            refused
              × `sharded` has a keyed input, which needs a key
                ╭─[jobs/job.toml:18:12]
             18 │ function = "m.sharded"
                ·            ─────┬─────
                ·                 ╰── has no key
                ╰────
              help: key = ["column"], or key = [] for one key over the whole stream
        "#]],
    );
    let one_key = plan(&job("key = []\nfunction = \"m.tally\"")).expect("valid");
    let tally = one_key.logical.nodes.iter().find(|n| n.name == "stats").expect("there");
    assert!(tally.function().and_then(|f| f.key.as_ref()).expect("keyed").is_whole_stream());
    assert_eq!(tally.parallelism, 1);
}

#[test]
fn streams_of_one_input_have_the_same_columns() {
    check_edited(
        &[(r#"input = "known""#, r#"input = ["known", "trips"]"#)],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                time     at, out of order by 10s
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              trips.output to task 2, stats: hash (city), 4 channels
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     trips.output, known.output
                key      city
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = ["known", "known.unknown", "trips"]"#)],
        expect![[r#"
            refused
              × `known` and `known.unknown` cannot be one input, as their columns differ: column 1 is `at timestamp`
              │ there and `why utf8?` here
                ╭─[jobs/job.toml:19:10]
             19 │ input = ["known", "known.unknown", "trips"]
                ·          ───┬───  ───────┬───────
                ·             │            ╰── here
                ·             ╰── there
                ╰────
              help: streams of one input have the same columns in the same order
        "#]],
    );
    check_edited(
        &[
            (
                "[operator.stats]",
                r#"[source.more]
connector = "memory"
schema = { at = "timestamp", town = "utf8" }

[operator.stats]"#,
            ),
            (r#"input = "known""#, r#"input = ["known", "more"]"#),
        ],
        expect![[r#"
            refused
              × `known` and `more` cannot be one input, as their columns differ: column 2 is `city utf8` there and `town
              │ utf8` here
                ╭─[jobs/job.toml:23:10]
             23 │ input = ["known", "more"]
                ·          ───┬───  ───┬──
                ·             │        ╰── here
                ·             ╰── there
                ╰────
              help: streams of one input have the same columns in the same order
              × the windows are by event time, and the source `more` has no `time`
                ╭─[jobs/job.toml:17:9]
             17 │ [source.more]
                ·         ──┬─
                ·           ╰── without `time`
                ╰────
                ╭─[jobs/job.toml:25:1]
             25 │ window = { tumbling = "1h", start = "hour" }
                · ───┬──
                ·    ╰── by event time
                ╰────
              help: add time = { column = "...", out-of-orderness = "..." } there, or set `clock = "processing"` here
        "#]],
    );
}
