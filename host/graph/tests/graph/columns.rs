//! Schemas along every edge: names, types, nulls, keys and times.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn a_column_that_is_not_there() {
    check_edited(
        &[(r#"fare = "float64?", "#, "")],
        expect![[r#"
            refused
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
            refused
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
            refused
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
            refused
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
            accepted
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
            refused
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
            accepted
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
            accepted
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
            refused
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
            accepted
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
fn time_columns() {
    check_edited(
        &[(r#"column = "at""#, r#"column = "when""#)],
        expect![[r#"
            refused
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
            refused
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
            refused
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
            refused
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
            refused
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
            refused
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
            refused
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
            refused
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
            refused
              × `content` replaces its input, so its output has no bounds of windows
                ╭─[jobs/job.toml:21:37]
             21 │ window = { tumbling = "1h", start = "hour" }
                ·                                     ───┬──
                ·                                        ╰── this bound of the window
                ╰────
        "#]],
    );
}
