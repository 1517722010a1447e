//! Values of the wrong type or out of range, and keys that are missing.

use expect_test::expect;

use crate::support::{check, check_edited};

#[test]
fn a_value_of_the_wrong_type() {
    check_edited(
        &[(r#"name = "rides""#, "name = 7")],
        expect![[r#"
            refused
              × `name` of [job] has to be a string, found an integer
               ╭─[jobs/job.toml:2:8]
             2 │ name = 7
               ·        ┬
               ·        ╰── this is an integer
               ╰────
        "#]],
    );
    check_edited(
        &[("parallelism = 2", r#"parallelism = "2""#)],
        expect![[r#"
            refused
              × `parallelism` of [job] has to be an integer from 1 to 128, found a string
               ╭─[jobs/job.toml:3:15]
             3 │ parallelism = "2"
               ·               ─┬─
               ·                ╰── this is a string
               ╰────
        "#]],
    );
    check_edited(
        &[("parallelism = 2", r#"parallelism = "${TWO}""#)],
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
    check_edited(
        &[(
            r#"[module.m]
path = "m.wasm""#,
            r#"[module]
m = "m.wasm""#,
        )],
        expect![[r#"
            refused
              × [module.m] has to be a table, found a string
               ╭─[jobs/job.toml:6:5]
             6 │ m = "m.wasm"
               ·     ────┬───
               ·         ╰── here
               ╰────
        "#]],
    );
    check_edited(
        &[
            (
                r#"[module.m]
path = "m.wasm""#,
                r#"module = ["m.wasm"]"#,
            ),
            (
                r#"[job]
"#,
                "",
            ),
            (
                r#"name = "rides"
"#,
                "",
            ),
            (
                r#"parallelism = 2
"#,
                "",
            ),
        ],
        expect![[r#"
            refused
              × the job file has no [job] table
              help: start it with
                    [job]
                    name = "my-job"
              × `module` of the job file has to be a section of tables such as [module.name], found an array
               ╭─[jobs/job.toml:2:10]
             2 │ module = ["m.wasm"]
               ·          ─────┬────
               ·               ╰── this is an array
               ╰────
              × there is no module `m`
                ╭─[jobs/job.toml:10:12]
             10 │ function = "m.known"
                ·            ────┬────
                ·                ╰── not a module
                ╰────
              help: add
                    [module.m]
                    path = "..."
              × there is no module `m`
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.stats"
                ·            ────┬────
                ·                ╰── not a module
                ╰────
              help: add
                    [module.m]
                    path = "..."
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, "input = 1")],
        expect![[r#"
            refused
              × `input` of [operator.stats] has to be a string or an array of strings, found an integer
                ╭─[jobs/job.toml:19:9]
             19 │ input = 1
                ·         ┬
                ·         ╰── this is an integer
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, "input = []")],
        expect![[r#"
            refused
              × `input` names no stream
                ╭─[jobs/job.toml:19:9]
             19 │ input = []
                ·         ─┬
                ·          ╰── empty
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"rides = "int32""#, r#"rides = "int""#)],
        expect![[r#"
            refused
              × unknown type `int`: expected one of boolean, int32, int64, float32, float64, timestamp, date, utf8,
              │ binary (with `?` behind it if null is allowed)
                ╭─[jobs/job.toml:10:88]
             10 │ schema = { at = "timestamp", city = "utf8", line = "int32", fare = "float64?", rides = "int" }
                ·                                                                                        ──┬──
                ·                                                                                          ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"rides = "int32""#, "rides = 32")],
        expect![[r#"
            refused
              × `rides` of [source.trips] has to be a type such as "int64" or "utf8?", found an integer
                ╭─[jobs/job.toml:10:88]
             10 │ schema = { at = "timestamp", city = "utf8", line = "int32", fare = "float64?", rides = 32 }
                ·                                                                                        ─┬
                ·                                                                                         ╰── this is an integer
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"key = ["city"]"#,
            r#"key = [1]
chain = "no"
columns = { rides = 1 }"#,
        )],
        expect![[r#"
            refused
              × `key` of [operator.stats] has to be a string or an array of strings, found an integer
                ╭─[jobs/job.toml:20:8]
             20 │ key = [1]
                ·        ┬
                ·        ╰── this is an integer
                ╰────
              × `chain` of [operator.stats] has to be true or false, found a string
                ╭─[jobs/job.toml:21:9]
             21 │ chain = "no"
                ·         ──┬─
                ·           ╰── this is a string
                ╰────
              × `rides` of [operator.stats] has to be the name of a column of the stream, found an integer
                ╭─[jobs/job.toml:22:21]
             22 │ columns = { rides = 1 }
                ·                     ┬
                ·                     ╰── this is an integer
                ╰────
        "#]],
    );
}

#[test]
fn a_value_out_of_range() {
    check_edited(
        &[("parallelism = 2", "parallelism = 0")],
        expect![[r#"
            refused
              × `parallelism` of [job] is 0: expected an integer from 1 to 128
               ╭─[jobs/job.toml:3:15]
             3 │ parallelism = 0
               ·               ┬
               ·               ╰── out of range
               ╰────
        "#]],
    );
    check_edited(
        &[("parallelism = 2", "parallelism = 129")],
        expect![[r#"
            refused
              × `parallelism` of [job] is 129: expected an integer from 1 to 128
               ╭─[jobs/job.toml:3:15]
             3 │ parallelism = 129
               ·               ─┬─
               ·                ╰── out of range
               ╰────
        "#]],
    );
    check_edited(
        &[(
            "parallelism = 2",
            r#"parallelism = 2
max-parallelism = 40000"#,
        )],
        expect![[r#"
            refused
              × `max-parallelism` of [job] is 40000: expected an integer from 1 to 32768
               ╭─[jobs/job.toml:4:19]
             4 │ max-parallelism = 40000
               ·                   ──┬──
               ·                     ╰── out of range
               ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known""#,
            r#"parallelism = 200
function = "m.known""#,
        )],
        expect![[r#"
            refused
              × parallelism 200 is more than the job's max-parallelism of 128
                ╭─[jobs/job.toml:14:15]
             14 │ parallelism = 200
                ·               ─┬─
                ·                ╰── too large
                ╰────
              help: raise `max-parallelism` in [job]; it then stays so for the life of the job
        "#]],
    );
    check_edited(
        &[(r#"name = "rides""#, r#"name = "my rides""#)],
        expect![[r#"
            refused
              × `my rides` is no name for a job: expected up to 100 letters, digits, `_`, `-` and `.`, and no `.` in
              │ front
               ╭─[jobs/job.toml:2:8]
             2 │ name = "my rides"
               ·        ─────┬────
               ·             ╰── here
               ╰────
        "#]],
    );
    check_edited(
        &[(r#"out-of-orderness = "10s""#, r#"out-of-orderness = "10 parsecs""#)],
        expect![[r#"
            refused
              × `out-of-orderness` of `time` of [source.trips]: expected a span of time such as "10s", "250ms" or
              │ "1h30m" (d, h, m, s, ms), found "10 parsecs"
                ╭─[jobs/job.toml:11:44]
             11 │ time = { column = "at", out-of-orderness = "10 parsecs" }
                ·                                            ──────┬─────
                ·                                                  ╰── cannot be read
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"out-of-orderness = "10s""#, r#"alignment = "never""#)],
        expect![[r#"
            refused
              × `alignment` of `time` of [source.trips]: expected a span of time such as "10s", "250ms" or "1h30m" (d,
              │ h, m, s, ms), found "never"; or "off" for none at all
                ╭─[jobs/job.toml:11:37]
             11 │ time = { column = "at", alignment = "never" }
                ·                                     ───┬───
                ·                                        ╰── cannot be read
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"out-of-orderness = "10s""#, r#"alignment-group = "all""#)],
        expect![[r#"
            refused
              × `alignment-group` goes with a span of time in `alignment`, which is not there
                ╭─[jobs/job.toml:11:43]
             11 │ time = { column = "at", alignment-group = "all" }
                ·                                           ──┬──
                ·                                             ╰── here
                ╰────
              help: such as alignment = "10s": how far this source may get ahead of the slowest in the group
        "#]],
    );
    check_edited(
        &[(r#"out-of-orderness = "10s""#, r#"out-of-orderness = "10s", idle = "0s""#)],
        expect![[r#"
            refused
              × `idle` of `time` of [source.trips] is zero: expected at least 1ms
                ╭─[jobs/job.toml:11:58]
             11 │ time = { column = "at", out-of-orderness = "10s", idle = "0s" }
                ·                                                          ──┬─
                ·                                                            ╰── too short
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"path = "m.wasm""#,
            r#"path = "m.wasm"
limits = { memory = "lots", call-timeout = "0s" }"#,
        )],
        expect![[r#"
            refused
              × `memory` of `limits` of [module.m]: expected an amount of memory such as "64MiB" (B, kB, MB, GB, KiB,
              │ MiB, GiB), found "lots"
               ╭─[jobs/job.toml:7:21]
             7 │ limits = { memory = "lots", call-timeout = "0s" }
               ·                     ───┬──
               ·                        ╰── cannot be read
               ╰────
              × `call-timeout` of `limits` of [module.m] is zero: expected at least 1ms
               ╭─[jobs/job.toml:7:44]
             7 │ limits = { memory = "lots", call-timeout = "0s" }
               ·                                            ──┬─
               ·                                              ╰── too short
               ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known""#,
            r#"on-error = "ignore"
function = "m.known""#,
        )],
        expect![[r#"
            refused
              × `on-error` of [operator.known] is "ignore": expected "fail" or "skip" or "dead-letter"
                ╭─[jobs/job.toml:14:12]
             14 │ on-error = "ignore"
                ·            ────┬───
                ·                ╰── not one of them
                ╰────
        "#]],
    );
}

#[test]
fn a_key_that_is_missing() {
    check_edited(
        &[(
            r#"name = "rides"
"#,
            "",
        )],
        expect![[r#"
            refused
              × [job] needs the key `name`
               ╭─[jobs/job.toml:1:2]
             1 │ [job]
               ·  ─┬─
               ·   ╰── no `name` here
               ╰────
              help: name = "my-job"
        "#]],
    );
    check_edited(
        &[(
            r#"[module.m]
path = "m.wasm""#,
            "[module.m]",
        )],
        expect![[r#"
            refused
              × [module.m] needs the key `path`
               ╭─[jobs/job.toml:5:9]
             5 │ [module.m]
               ·         ┬
               ·         ╰── no `path` here
               ╰────
              help: path = "functions.wasm"
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
"#,
            "",
        )],
        expect![[r#"
            refused
              × [operator.known] needs the key `function`
                ╭─[jobs/job.toml:13:11]
             13 │ [operator.known]
                ·           ──┬──
                ·             ╰── no `function` here
                ╰────
              help: function = "module.function" names what it runs
        "#]],
    );
    check_edited(
        &[(
            r#"input = "known"
"#,
            "",
        )],
        expect![[r#"
            refused
              × [operator.stats] needs the key `input`
                ╭─[jobs/job.toml:17:11]
             17 │ [operator.stats]
                ·           ──┬──
                ·             ╰── no `input` here
                ╰────
              help: input = "name" reads what the node of that name makes
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
schema"#,
            "schema",
        )],
        expect![[r#"
            refused
              × [source.trips] needs the key `connector`
               ╭─[jobs/job.toml:8:9]
             8 │ [source.trips]
               ·         ──┬──
               ·           ╰── no `connector` here
               ╰────
              help: such as connector = "file"
        "#]],
    );
    check_edited(
        &[(r#"time = { column = "at", out-of-orderness = "10s" }"#, "time = {}")],
        expect![[r#"
            refused
              × `time` of [source.trips] needs the key `column`
                ╭─[jobs/job.toml:11:1]
             11 │ time = {}
                · ──┬─
                ·   ╰── no `column` here
                ╰────
              help: column = "ts" names the column that has a row's event time
        "#]],
    );
    check(
        "",
        expect![[r#"
            refused
              × the job file has no [job] table
              help: start it with
                    [job]
                    name = "my-job"
              × the job has no source, so there is nothing to do
              help: [source.NAME] with a `connector` reads rows
        "#]],
    );
}
