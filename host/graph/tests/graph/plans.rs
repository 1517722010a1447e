//! Plans of jobs with nothing wrong in them.

use std::time::Duration;

use expect_test::expect;
use millstream_graph::{BoundColumn, Grant, OutputColumn};
use millstream_types::DataType;

use crate::support::{JOB, check, check_edited, edited, plan};

#[test]
fn a_chain_an_exchange_and_a_chain() {
    check(
        JOB,
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
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
              out: sink memory
                from     stats.output
        "#]],
    );
}

#[test]
fn side_outputs_late_rows_and_dead_letters() {
    let job = r#"
[job]
name = "sides"

[module.m]
path = "m.wasm"

[source.trips]
connector = "memory"
schema = { at = "timestamp", city = "utf8", fare = "float64?", rides = "int32" }
time = { column = "at", out-of-orderness = "1m30s", idle = "30s", alignment = "1m", alignment-group = "all" }
on-error = "dead-letter"

[operator.known]
function = "m.known"
input = "trips"
on-error = "dead-letter"
on-trap = "isolate"
parameters = { limit = 9 }

[operator.stats]
function = "m.stats"
input = "known"
window = { tumbling = "1h", start = "hour", end = "hour_end" }

[sink.out]
connector = "memory"
input = "stats"

[sink.late]
connector = "memory"
input = "stats.late"

[sink.unknown]
connector = "memory"
input = "known.unknown"

[sink.bad]
connector = "memory"
input = ["trips.dead-letter", "known.dead-letter"]
"#;
    check(
        job,
        expect![[r#"
            accepted
            job sides: parallelism 1, 1 slot, 2 tasks
            task 1 x1: trips -> known -> stats -> out -> late -> unknown
              trips: source memory
                time     at, out of order by 1m30s, idle after 30s, aligned within 1m of group all
                on error dead-letter
                out      at timestamp, city utf8, fare float64?, rides int32
                out dead-letter operator utf8, subtask int32, position utf8?, reason utf8, row utf8
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 9
                on error dead-letter
                on trap  isolate
                out      at timestamp, city utf8, fare float64, rides int32
                out unknown why utf8?
                out dead-letter operator utf8, subtask int32, position utf8?, reason utf8, row utf8
              stats: aggregate m.stats
                from     known.output
                key      one for the whole stream
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      hour timestamp, hour_end timestamp, count int64
                out late at timestamp, city utf8, fare float64, rides int32
              out: sink memory
                from     stats.output
              late: sink memory
                from     stats.late
              unknown: sink memory
                from     known.unknown
              trips.dead-letter to task 2, bad: forward, 1 channel
              known.dead-letter to task 2, bad: forward, 1 channel
            task 2 x1: bad
              bad: sink memory
                from     trips.dead-letter, known.dead-letter
        "#]],
    );
}

#[test]
fn unions_and_other_parallelisms() {
    let job = r#"
[job]
name = "wide"
parallelism = 2

[module.m]
path = "m.wasm"

[source.a]
connector = "memory"
parallelism = 1
schema = { x = "int64" }

[source.b]
connector = "memory"
schema = { x = "int64?" }

[operator.both]
builtin = "union"
input = ["a", "b"]
parallelism = 3

[operator.spread]
function = "m.filter"
input = "both"
partition = "broadcast"

[operator.alone]
function = "m.filter"
input = "spread"
chain = false

[operator.keyed]
function = "m.filter"
input = "alone"
key = ["x"]

[sink.one]
connector = "memory"
input = "keyed"
parallelism = 1

[sink.two]
connector = "memory"
input = "keyed"
"#;
    check(
        job,
        expect![[r#"
            accepted
            job wide: parallelism 2, 3 slots, 7 tasks
            task 1 x1: a
              a: source memory
                out      x int64
              a.output to task 3, both: rebalance, 3 channels
            task 2 x2: b
              b: source memory
                out      x int64?
              b.output to task 3, both: rebalance, 6 channels
            task 3 x3: both
              both: union
                from     a.output, b.output
                out      x int64?
              both.output to task 4, spread: broadcast, 6 channels
            task 4 x2: spread
              spread: map m.filter
                from     both.output
                out      x int64?
              spread.output to task 5, alone: forward, 2 channels
            task 5 x2: alone
              alone: map m.filter
                from     spread.output
                out      x int64?
              alone.output to task 6, keyed: hash (x), 4 channels
            task 6 x2: keyed -> two
              keyed: map m.filter
                from     alone.output
                key      x
                out      x int64?
              two: sink memory
                from     keyed.output
              keyed.output to task 7, one: global, 2 channels
            task 7 x1: one
              one: sink memory
                from     keyed.output
        "#]],
    );
}

#[test]
fn sources_need_not_be_aligned() {
    let job = "[job]\nname = \"apart\"\n[source.trips]\nconnector = \"memory\"\nschema = { at = \"timestamp\" }\n\
        time = { column = \"at\", alignment = \"off\" }\n[sink.out]\nconnector = \"memory\"\ninput = \"trips\"";
    check(
        job,
        expect![[r#"
            accepted
            job apart: parallelism 1, 1 slot, 1 task
            task 1 x1: trips -> out
              trips: source memory
                time     at, out of order by 0ms, not aligned
                out      at timestamp
              out: sink memory
                from     trips.output
        "#]],
    );
}

#[test]
fn event_times_in_the_middle_of_a_job() {
    check_edited(
        &[
            ("time = { column = \"at\", out-of-orderness = \"10s\" }\n", ""),
            (
                "function = \"m.known\"",
                "function = \"m.known\"\nchain = false\nid = \"k\"\ntime = { column = \"at\", idle = \"1s\" }",
            ),
            (
                "input = \"stats\"",
                "input = \"stats\"\n\n[sink.unknown]\nconnector = \"memory\"\ninput = \"known.unknown\"",
            ),
        ],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 3 tasks
            task 1 x2: trips
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              trips.output to task 2, known: forward, 2 channels
            task 2 x2: known -> known/watermark -> unknown
              known: map m.known
                id       k
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              known/watermark: watermark
                id       k/watermark
                from     known.output
                time     at, out of order by 0ms, idle after 1s
                out      at timestamp, city utf8, line int32, fare float64, rides int32
              unknown: sink memory
                from     known.unknown
              known/watermark.output to task 3, stats: hash (city), 4 channels
            task 3 x2: stats -> out
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
            ("time = { column = \"at\", out-of-orderness = \"10s\" }\n", ""),
            ("function = \"m.known\"", "builtin = \"watermark\"\ntime = { column = \"at\" }"),
        ],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known
              trips: source memory
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: watermark
                from     trips.output
                time     at, out of order by 0ms
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
fn a_process_function_carries_its_input_and_replaces_on_the_side() {
    let job = r#"
[job]
name = "process"

[module.m]
path = "m.wasm"
allow = ["env:A"]
limits = { memory = "1MiB", call-timeout = "1s", recycle-memory = "512KiB" }

[source.trips]
connector = "memory"
schema = { line = "int32", rides = "int32" }
time = { column = "rides64" }

[operator.totals]
function = "m.by_line"
input = "trips"
key = ["line"]
limits = { memory = "2MiB" }

[sink.out]
connector = "memory"
input = "totals"

[sink.alerts]
connector = "memory"
input = "totals.alerts"
"#;
    let job = job.replace("rides = \"int32\" }", "rides = \"int32\", rides64 = \"int64\" }");
    check(
        &job,
        expect![[r#"
            accepted
            job process: parallelism 1, 1 slot, 2 tasks
            task 1 x1: trips
              trips: source memory
                time     rides64, out of order by 0ms
                out      line int32, rides int32, rides64 int64
              trips.output to task 2, totals: hash (line), 1 channel
            task 2 x1: totals -> out -> alerts
              totals: process m.by_line
                from     trips.output
                key      line
                reads    rides int64 (from int32)
                allow    env:A
                out      line int32, rides int32, rides64 int64, total int64
                out alerts text utf8
              out: sink memory
                from     totals.output
              alerts: sink memory
                from     totals.alerts
        "#]],
    );
    let plan = plan(&job).expect("valid");
    let node = plan.logical.nodes.iter().find_map(|n| n.function()).expect("one function");
    let key = node.key.as_ref().expect("keyed");
    assert_eq!(key.columns, [0]);
    let line = BoundColumn { column: 0, cast: Some(DataType::Int64), reject_null: false };
    assert_eq!(key.function_columns, [line], "keys are as in the stream and widened for the function");
    let columns: Vec<_> =
        node.outputs.iter().map(|o| (o.columns.as_slice(), o.timer_columns.as_deref())).collect();
    let (input, made) = (OutputColumn::Input, OutputColumn::Made(0));
    let extended: &[OutputColumn] = &[input(0), input(1), input(2), made];
    assert_eq!(
        columns,
        [(extended, None), (&[made], Some([made].as_slice()))],
        "a timer has no row to carry"
    );
    assert_eq!((node.limits.memory, node.limits.call_timeout), (Some(2 << 20), Some(Duration::from_secs(1))));
    assert_eq!(node.limits.recycle_memory, Some(512 << 10));
    assert_eq!(node.allow, [Grant::Environment("A".to_owned())]);
}

#[test]
fn a_timer_carries_the_key() {
    let plan = plan(&edited(&[
        (
            "function = \"m.known\"",
            "function = \"m.by_line\"\nkey = [\"line\"]\ncolumns = { rides = \"line\" }",
        ),
        (
            "at = \"timestamp\", city = \"utf8\", line = \"int32\", fare = \"float64?\", rides = \"int32\"",
            "line = \"int32\"",
        ),
        ("time = { column = \"at\", out-of-orderness = \"10s\" }\n", ""),
        (
            "window = { tumbling = \"1h\", start = \"hour\" }",
            "window = { global = true }\ncolumns = { rides = \"total\" }",
        ),
        ("key = [\"city\"]", "key = [\"line\"]"),
    ]));
    let plan = plan.unwrap_or_else(|error| panic!("{}", error.0.render(false)));
    let node = plan.logical.nodes.iter().find_map(|n| n.function()).expect("one function");
    let expected = [OutputColumn::Key(0), OutputColumn::Made(0)];
    assert_eq!(node.outputs[0].timer_columns.as_deref(), Some(expected.as_slice()));
}

#[test]
fn no_part_of_a_job_breaks_the_planner() {
    for end in 0..JOB.len() {
        // Whatever comes of it, it is a plan or a list of errors, and both can be shown.
        match plan(&JOB[..end]) {
            Ok(plan) => assert!(!plan.describe().to_string().is_empty()),
            Err(error) => assert!(!error.0.render(false).is_empty(), "{end}"),
        }
    }
    let lines: Vec<&str> = JOB.lines().collect();
    for without in 0..lines.len() {
        let kept = lines.iter().enumerate().filter(|(i, _)| *i != without).map(|(_, l)| *l);
        if let Err(error) = plan(&kept.collect::<Vec<_>>().join("\n")) {
            assert!(error.0.problems().iter().all(|p| !p.message.is_empty()));
        }
    }
}
