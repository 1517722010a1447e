//! Windows that have a meaning, and what they need of their input.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn windows_by_event_time_need_event_time() {
    check_edited(
        &[(
            r#"time = { column = "at", out-of-orderness = "10s" }
"#,
            "",
        )],
        expect![[r#"
            refused
              × the windows are by event time, and the source `trips` has no `time`
               ╭─[jobs/job.toml:8:9]
             8 │ [source.trips]
               ·         ──┬──
               ·           ╰── without `time`
               ╰────
                ╭─[jobs/job.toml:20:1]
             20 │ window = { tumbling = "1h", start = "hour" }
                · ───┬──
                ·    ╰── by event time
                ╰────
              help: add time = { column = "...", out-of-orderness = "..." } there, or set `clock = "processing"` here
        "#]],
    );
    check_edited(
        &[
            (
                r#"time = { column = "at", out-of-orderness = "10s" }
"#,
                "",
            ),
            (
                r#"window = { tumbling = "1h", start = "hour" }"#,
                r#"window = { tumbling = "1h", clock = "processing" }"#,
            ),
        ],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   tumbling 1h of processing time
                reads    rides int64 (from int32)
                out      city utf8, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[
            (
                r#"time = { column = "at", out-of-orderness = "10s" }
"#,
                "",
            ),
            (
                r#"function = "m.known"
input = "trips""#,
                r#"function = "m.known"
input = "trips"
time = { column = "at" }"#,
            ),
        ],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known -> known/watermark
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              known/watermark: watermark
                from     known.output
                time     at, out of order by 0ms
                out      at timestamp, city utf8, line int32, fare float64, rides int32
              known/watermark.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known/watermark.output
                key      city
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[
            (
                r#"time = { column = "at", out-of-orderness = "10s" }
"#,
                "",
            ),
            (r#"window = { tumbling = "1h", start = "hour" }"#, "window = { global = true }"),
        ],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   global of event time, fires at the end of the input
                reads    rides int64 (from int32)
                out      city utf8, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[
            (
                r#"time = { column = "at", out-of-orderness = "10s" }
"#,
                "",
            ),
            (
                r#"function = "m.stats"
input = "known"
key = ["city"]
window = { tumbling = "1h", start = "hour" }"#,
                r#"function = "m.by_line"
input = "known"
key = ["line"]"#,
            ),
        ],
        expect![[r#"
            accepted
              ⚠ `by_line` sets timers by event time, and the source `trips` has no `time`: they fire at the end of the
              │ input only
               ╭─[jobs/job.toml:8:9]
             8 │ [source.trips]
               ·         ──┬──
               ·           ╰── without `time`
               ╰────
                ╭─[jobs/job.toml:17:12]
             17 │ function = "m.by_line"
                ·            ─────┬─────
                ·                 ╰── sets timers
                ╰────
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              known.output to task 2, stats: hash (line), 4 channels
            task 2 x2: stats -> out
              stats: process m.by_line
                from     known.output
                key      line
                reads    rides int64 (from int32)
                out      at timestamp, city utf8, line int32, fare float64, rides int32, total int64
                out alerts text utf8
              out: sink memory
                from     stats.output
        "#]],
    );
}

#[test]
fn windows_of_every_kind() {
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { sliding = "10s", slide = "2s", offset = "1s", lateness = "1m", end = "until" }"#,
        )],
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
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   sliding 10s every 2s offset 1s of event time, lateness 1m
                reads    rides int64 (from int32)
                out      city utf8, until timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { session = "12h", trigger = { continuous = "10s" } }"#,
        )],
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
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   session 12h of event time, fires by continuous 10s
                reads    rides int64 (from int32)
                out      city utf8, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            "window = { global = true, trigger = { count = 100 }, purge = true }",
        )],
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
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   global of event time, fires by count 100, purges
                reads    rides int64 (from int32)
                out      city utf8, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "1m", clock = "processing" }"#,
        )],
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
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats -> out
              stats: aggregate m.stats
                from     known.output
                key      city
                window   tumbling 1m of processing time
                reads    rides int64 (from int32)
                out      city utf8, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
}
