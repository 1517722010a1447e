//! The shape of a job: cycles, ends that are loose, and how rows are dealt out.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn a_job_does_not_go_round_in_circles() {
    check_edited(
        &[
            (
                r#"function = "m.known"
input = "trips""#,
                r#"function = "m.known"
input = ["trips", "again"]"#,
            ),
            (
                "[sink.out]",
                r#"[operator.again]
function = "m.filter"
input = "known"

[sink.out]"#,
            ),
        ],
        expect![[r#"
            refused
              × the job goes round in a circle: known -> again -> known
                ╭─[jobs/job.toml:15:19]
             15 │ input = ["trips", "again"]
                ·                   ───┬───
                ·                      ╰── `known` reads this
                ╰────
                ╭─[jobs/job.toml:25:9]
             25 │ input = "known"
                ·         ───┬───
                ·            ╰── `again` reads this
                ╰────
              help: rows have to come to an end at a sink: let one of these read something else
        "#]],
    );
    check_edited(
        &[(r#"input = "trips""#, r#"input = "known""#)],
        expect![[r#"
            refused
              × the job goes round in a circle: known -> known
                ╭─[jobs/job.toml:15:9]
             15 │ input = "known"
                ·         ───┬───
                ·            ╰── `known` reads this
                ╰────
              help: rows have to come to an end at a sink: let one of these read something else
        "#]],
    );
}

#[test]
fn what_nothing_reads() {
    check_edited(
        &[(r#"input = "stats""#, r#"input = "known""#)],
        expect![[r#"
            accepted
              ⚠ nothing reads from the operator `stats`: its rows are dropped
                ╭─[jobs/job.toml:17:11]
             17 │ [operator.stats]
                ·           ──┬──
                ·             ╰── not read
                ╰────
            job rides: parallelism 2, 2 slots, 2 tasks
            task 1 x2: trips -> known -> out
              trips: source memory
                time     at, out of order by 10s
                out      at timestamp, city utf8, line int32, fare float64?, rides int32
              known: map m.known
                from     trips.output
                reads    fare float64?
                set      limit = 5
                out      at timestamp, city utf8, line int32, fare float64, rides int32
                out unknown why utf8?
              out: sink memory
                from     known.output
              known.output to task 2, stats: hash (city), 4 channels
            task 2 x2: stats
              stats: aggregate m.stats
                from     known.output
                key      city
                window   tumbling 1h of event time
                reads    rides int64 (from int32)
                out      city utf8, hour timestamp, count int64
        "#]],
    );
    check_edited(
        &[(
            "[source.trips]",
            r#"[module.spare]
path = "other.wasm"

[source.trips]"#,
        )],
        expect![[r#"
            accepted
              ⚠ no operator uses the module `spare`
               ╭─[jobs/job.toml:8:9]
             8 │ [module.spare]
               ·         ──┬──
               ·           ╰── not used
               ╰────
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
            r#"[source.trips]
connector"#,
            r#"[operator.trips]
connector"#,
        )],
        expect![[r#"
            refused
              × the job has no source, so there is nothing to do
              help: [source.NAME] with a `connector` reads rows
              × [operator.trips] needs the key `function`
               ╭─[jobs/job.toml:8:11]
             8 │ [operator.trips]
               ·           ──┬──
               ·             ╰── no `function` here
               ╰────
              help: function = "module.function" names what it runs
              × [operator.trips] needs the key `input`
               ╭─[jobs/job.toml:8:11]
             8 │ [operator.trips]
               ·           ──┬──
               ·             ╰── no `input` here
               ╰────
              help: input = "name" reads what the node of that name makes
              × unknown key `connector` in [operator.trips]
               ╭─[jobs/job.toml:9:1]
             9 │ connector = "memory"
               · ────┬────
               ·     ╰── not known here
               ╰────
              help: known keys: function, builtin, input, columns, key, window, parameters, partition, time, on-error,
                    on-trap, on-null, allow, limits, state-ttl, id, parallelism, chain
              × unknown key `schema` in [operator.trips]
                ╭─[jobs/job.toml:10:1]
             10 │ schema = { at = "timestamp", city = "utf8", line = "int32", fare = "float64?", rides = "int32" }
                · ───┬──
                ·    ╰── not known here
                ╰────
              help: known keys: function, builtin, input, columns, key, window, parameters, partition, time, on-error,
                    on-trap, on-null, allow, limits, state-ttl, id, parallelism, chain
        "#]],
    );
}

#[test]
fn dead_letters_go_somewhere() {
    check_edited(
        &[(
            r#"function = "m.known""#,
            r#"function = "m.known"
on-error = "dead-letter""#,
        )],
        expect![[r#"
            refused
              × nothing reads `known.dead-letter`, where rows go that cannot be used
                ╭─[jobs/job.toml:15:12]
             15 │ on-error = "dead-letter"
                ·            ──────┬──────
                ·                  ╰── sends them there
                ╰────
              help: add a sink with input = "known.dead-letter", or set `on-error = "skip"`
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
schema"#,
            r#"connector = "memory"
on-error = "dead-letter"
schema"#,
        )],
        expect![[r#"
            refused
              × nothing reads `trips.dead-letter`, where rows go that cannot be used
                ╭─[jobs/job.toml:10:12]
             10 │ on-error = "dead-letter"
                ·            ──────┬──────
                ·                  ╰── sends them there
                ╰────
              help: add a sink with input = "trips.dead-letter", or set `on-error = "skip"`
        "#]],
    );
}

#[test]
fn partitioning_fits_parallelism_and_key() {
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
parallelism = 1
partition = "forward""#,
        )],
        expect![[r#"
            refused
              × `stats` has parallelism 2 and `out` has 1: forward needs the same on both sides
                ╭─[jobs/job.toml:25:13]
             25 │ partition = "forward"
                ·             ────┬────
                ·                 ╰── here
                ╰────
                ╭─[jobs/job.toml:27:9]
             27 │ input = "stats"
                ·         ───┬───
                ·            ╰── this stream
                ╰────
        "#]],
    );
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
partition = "hash""#,
        )],
        expect![[r#"
            refused
              × `out` has no `key` by which rows could be dealt out
                ╭─[jobs/job.toml:24:13]
             24 │ partition = "hash"
                ·             ───┬──
                ·                ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"key = ["city"]"#,
            r#"key = ["city"]
partition = "rebalance""#,
        )],
        expect![[r#"
            refused
              × `stats` is keyed, so its rows have to be dealt out by hash
                ╭─[jobs/job.toml:21:13]
             21 │ partition = "rebalance"
                ·             ─────┬─────
                ·                  ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
partition = "random""#,
        )],
        expect![[r#"
            refused
              × `partition` of [sink.out] is "random": expected "forward" or "rebalance" or "hash" or "broadcast" or
              │ "global"
                ╭─[jobs/job.toml:24:13]
             24 │ partition = "random"
                ·             ────┬───
                ·                 ╰── not one of them
                ╰────
        "#]],
    );
}

#[test]
fn one_key_for_the_whole_stream_is_one_subtask() {
    check_edited(
        &[(r#"key = ["city"]"#, "parallelism = 2")],
        expect![[r#"
            refused
              × `stats` has one key for the whole stream, which one subtask has to see
                ╭─[jobs/job.toml:20:15]
             20 │ parallelism = 2
                ·               ┬
                ·               ╰── expected 1
                ╰────
              help: leave `parallelism` out, or give it a `key`
        "#]],
    );
}

#[test]
fn everything_wrong_is_reported_in_the_order_of_the_file() {
    check_edited(
        &[
            ("parallelism = 2", "paralelism = 2"),
            (r#"fare = "float64?""#, r#"fare = "utf8?""#),
            (r#"rides = "int32""#, r#"rides = "int""#),
            (r#"function = "m.stats""#, r#"function = "m.stat""#),
            (r#"key = ["city"]"#, r#"key = ["town"]"#),
            (r#"tumbling = "1h""#, r#"tumbling = "1""#),
            (
                r#"connector = "memory"
input"#,
                r#"connector = "memory"
row = 1
input"#,
            ),
        ],
        expect![[r#"
            refused
              × unknown key `paralelism` in [job]
               ╭─[jobs/job.toml:3:1]
             3 │ paralelism = 2
               · ─────┬────
               ·      ╰── not known here
               ╰────
              help: did you mean `parallelism`?
              × unknown type `int`: expected one of boolean, int32, int64, float32, float64, timestamp, date, utf8,
              │ binary (with `?` behind it if null is allowed)
                ╭─[jobs/job.toml:10:85]
             10 │ schema = { at = "timestamp", city = "utf8", line = "int32", fare = "utf8?", rides = "int" }
                ·                                                                                     ──┬──
                ·                                                                                       ╰── here
                ╰────
              × the module `m` has no function `stat`
                ╭─[jobs/job.toml:18:12]
             18 │ function = "m.stat"
                ·            ────┬───
                ·                ╰── not a function
                ╰────
              help: did you mean `stats`?
              × `tumbling` of `window` of [operator.stats]: expected a span of time such as "10s", "250ms" or "1h30m"
              │ (d, h, m, s, ms), found "1"
                ╭─[jobs/job.toml:21:23]
             21 │ window = { tumbling = "1", start = "hour" }
                ·                       ─┬─
                ·                        ╰── cannot be read
                ╰────
              × sink `out`: there is no option `row`
                ╭─[jobs/job.toml:25:1]
             25 │ row = 1
                · ───┬───
                ·    ╰── here
                ╰────
        "#]],
    );
}
