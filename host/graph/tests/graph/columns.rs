//! Schemas along every edge: names, types, nulls, keys and times.

use expect_test::expect;

use crate::support::{check, check_edited, edited, plan};

#[test]
fn a_column_that_is_not_there() {
    check_edited(
        &[(r#"fare = "float64?", "#, "")],
        expect![[r#"
              × `known` reads the column `fare float64?`, which is not in `trips`
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.known"
                ·            ────┬────
                ·                ╰── no such column
                ╰────
              help: its columns: at, city, line, rides
        "#]],
    );
    check_edited(
        &[(r#"fare = "float64?""#, r#"fair = "float64?""#)],
        expect![[r#"
              × `known` reads the column `fare float64?`, which is not in `trips`
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.known"
                ·            ────┬────
                ·                ╰── no such column
                ╰────
              help: its columns: at, city, line, fair, rides
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
columns = { fare = "price" }"#,
        )],
        expect![[r#"
              × there is no column `price` in `trips`
                ╭─[jobs/job.toml:16:20]
             16 │ columns = { fare = "price" }
                ·                    ───┬───
                ·                       ╰── no such column
                ╰────
              help: its columns: at, city, line, fare, rides
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
columns = { fair = "fare" }"#,
        )],
        expect![[r#"
              × `known` reads no column `fair`
                ╭─[jobs/job.toml:16:13]
             16 │ columns = { fair = "fare" }
                ·             ──┬─
                ·               ╰── not read
                ╰────
              help: it reads: fare
        "#]],
    );
}

#[test]
fn a_column_under_another_name() {
    check_edited(
        &[
            (r#"fare = "float64?""#, r#"price = "float64?""#),
            (
                r#"function = "m.known"
input = "trips""#,
                r#"function = "m.known"
input = "trips"
columns = { fare = "price" }"#,
            ),
        ],
        expect![[r#"
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                time     at, out of order by 10s
                out      at timestamp, city utf8, line int32, price float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64? = price
                set      limit = 5
                out      at timestamp, city utf8, line int32, price float64?, rides int32, fare float64
                out unknown why utf8?
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
}

#[test]
fn types_only_widen() {
    check_edited(
        &[(r#"rides = "int32""#, r#"rides = "float32""#)],
        expect![[r#"
              × the column `rides` is float32, `stats` takes int64 for `rides`
                ╭─[jobs/job.toml:18:12]
             18 │ function = "m.stats"
                ·            ────┬────
                ·                ╰── float32 where int64 was expected
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"rides = "int32""#, r#"rides = "int64""#)],
        expect![[r#"
        job rides: parallelism 2, 2 slots, 2 tasks
        task 1 x2: trips -> known
          trips: source memory
            time     at, out of order by 10s
            out      at timestamp, city utf8, line int32, fare float64?, rides int64
          known: map m.known
            from     trips.output
            reads    fare float64?
            set      limit = 5
            out      at timestamp, city utf8, line int32, fare float64, rides int64
            out unknown why utf8?
          known.output to task 2, stats: hash (city), 4 channels
        task 2 x2: stats -> out
          stats: aggregate m.stats
            from     known.output
            key      city
            window   tumbling 1h of event time
            reads    rides int64
            out      city utf8, hour timestamp, count int64
          out: sink memory
            from     stats.output
    "#]],
    );
    check_edited(
        &[(r#"fare = "float64?""#, r#"fare = "float32?""#)],
        expect![[r#"
        job rides: parallelism 2, 2 slots, 2 tasks
        task 1 x2: trips -> known
          trips: source memory
            time     at, out of order by 10s
            out      at timestamp, city utf8, line int32, fare float32?, rides int32
          known: map m.known
            from     trips.output
            reads    fare float64? (from float32)
            set      limit = 5
            out      at timestamp, city utf8, line int32, fare float64, rides int32
            out unknown why utf8?
          known.output to task 2, stats: hash (city), 4 channels
        task 2 x2: stats -> out
          stats: aggregate m.stats
            from     known.output
            key      city
            window   tumbling 1h of event time
            reads    rides int64 (from int32)
            out      city utf8, hour timestamp, count int64
          out: sink memory
            from     stats.output
    "#]],
    );
}

#[test]
fn a_null_needs_a_policy() {
    check_edited(
        &[(r#"function = "m.known""#, r#"function = "m.strict""#)],
        expect![[r#"
              × the column `fare` may be null, `strict` takes `fare` without null
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.strict"
                ·            ─────┬────
                ·                 ╰── may be null
                ╰────
              help: let the function take an optional value, or set `on-null = "reject"`: rows with null there are then
                    refused and follow `on-error`
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known""#,
            r#"function = "m.strict"
on-null = "reject"
on-error = "skip""#,
        )],
        expect![[r#"
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                time     at, out of order by 10s
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.strict
                from     trips.output
                reads    fare float64 (rejects null)
                on error skip
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
}

#[test]
fn key_columns() {
    check_edited(
        &[(r#"key = ["city"]"#, r#"key = ["town"]"#)],
        expect![[r#"
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
    check(&job("function = \"m.tally\""), expect![[r#"
          × `tally` is a process function, which needs a key
            ╭─[jobs/job.toml:18:12]
         18 │ function = "m.tally"
            ·            ────┬────
            ·                ╰── has no key
            ╰────
          help: key = ["column"], or key = [] for one key over the whole stream
    "#]]);
    check(&job("function = \"m.sharded\""), expect![[r#"
          × `sharded` has a keyed input, which needs a key
            ╭─[jobs/job.toml:18:12]
         18 │ function = "m.sharded"
            ·            ─────┬─────
            ·                 ╰── has no key
            ╰────
          help: key = ["column"], or key = [] for one key over the whole stream
    "#]]);
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

#[test]
fn time_columns() {
    check_edited(
        &[(r#"column = "at""#, r#"column = "when""#)],
        expect![[r#"
              × the time column `when` is not among the columns
                ╭─[jobs/job.toml:11:19]
             11 │ time = { column = "when", out-of-orderness = "10s" }
                ·                   ───┬──
                ·                      ╰── no such column
                ╰────
              help: the columns: at, city, line, fare, rides
        "#]],
    );
    check_edited(
        &[(r#"column = "at""#, r#"column = "city""#)],
        expect![[r#"
              × the time column `city` is utf8: expected timestamp or int64
                ╭─[jobs/job.toml:11:19]
             11 │ time = { column = "city", out-of-orderness = "10s" }
                ·                   ───┬──
                ·                      ╰── has no times
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"at = "timestamp""#, r#"at = "timestamp?""#)],
        expect![[r#"
              × the time column `at` may be null: every row needs a time
                ╭─[jobs/job.toml:11:19]
             11 │ time = { column = "at", out-of-orderness = "10s" }
                ·                   ──┬─
                ·                     ╰── may be null
                ╰────
              help: declare it without `?`: rows without a time then follow `on-error`
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
time = { column = "ta" }"#,
        )],
        expect![[r#"
              × the time column `ta` is not among the columns of the operator's output
                ╭─[jobs/job.toml:16:19]
             16 │ time = { column = "ta" }
                ·                   ──┬─
                ·                     ╰── no such column
                ╰────
              help: the columns: at, city, line, fare, rides
        "#]],
    );
    check_edited(
        &[
            (
                r#"connector = "memory"
schema = { at = "timestamp", city = "utf8", line = "int32", fare = "float64?", rides = "int32" }"#,
                r#"connector = "two""#,
            ),
            (
                r#"function = "m.known"
input = "trips""#,
                r#"function = "m.filter"
input = "trips.right""#,
            ),
            (
                r#"function = "m.stats"
input = "known"
key = ["city"]"#,
                r#"function = "m.stats"
input = "trips"
key = ["x"]
columns = { rides = "x" }"#,
            ),
        ],
        expect![[r#"
              × the time column `at` of port `right` may be null: every row needs a time
                ╭─[jobs/job.toml:10:19]
             10 │ time = { column = "at", out-of-orderness = "10s" }
                ·                   ──┬─
                ·                     ╰── may be null
                ╰────
              help: declare it without `?`: rows without a time then follow `on-error`
        "#]],
    );
}

#[test]
fn the_bounds_of_windows_need_names_of_their_own() {
    check_edited(
        &[(r#"start = "hour""#, r#"start = "city""#)],
        expect![[r#"
              × the output of `stats` has a column `city` already
                ╭─[jobs/job.toml:21:37]
             21 │ window = { tumbling = "1h", start = "city" }
                ·                                     ───┬──
                ·                                        ╰── this bound of the window
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"start = "hour""#, r#"start = "hour", end = "count""#)],
        expect![[r#"
              × the output of `stats` has a column `count` already
                ╭─[jobs/job.toml:21:51]
             21 │ window = { tumbling = "1h", start = "hour", end = "count" }
                ·                                                   ───┬───
                ·                                                      ╰── this bound of the window
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"start = "hour""#, r#"start = "hour", end = "hour""#)],
        expect![[r#"
              × `start` and `end` of a window need columns of their own
                ╭─[jobs/job.toml:21:51]
             21 │ window = { tumbling = "1h", start = "hour", end = "hour" }
                ·                                                   ───┬──
                ·                                                      ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"function = "m.stats""#, r#"function = "m.content""#)],
        expect![[r#"
              × `content` replaces its input, so its output has no bounds of windows
                ╭─[jobs/job.toml:21:37]
             21 │ window = { tumbling = "1h", start = "hour" }
                ·                                     ───┬──
                ·                                        ╰── this bound of the window
                ╰────
        "#]],
    );
}
