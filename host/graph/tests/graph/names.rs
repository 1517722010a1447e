//! Names that mean nothing, and the one that was perhaps meant.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    check_edited(
        &[("parallelism = 2", "paralelism = 2")],
        expect![[r#"
            refused
              × unknown key `paralelism` in [job]
               ╭─[jobs/job.toml:3:1]
             3 │ paralelism = 2
               · ─────┬────
               ·      ╰── not known here
               ╰────
              help: did you mean `parallelism`?
        "#]],
    );
    check_edited(
        &[(r#"key = ["city"]"#, r#"keys = ["city"]"#)],
        expect![[r#"
            refused
              × unknown key `keys` in [operator.stats]
                ╭─[jobs/job.toml:20:1]
             20 │ keys = ["city"]
                · ──┬─
                ·   ╰── not known here
                ╰────
              help: did you mean `key`?
        "#]],
    );
    check_edited(
        &[("[operator.known]", "[operators.known]"), (r#"input = "known""#, r#"input = "trips""#)],
        expect![[r#"
            refused
              × unknown key `operators` in the job file
                ╭─[jobs/job.toml:13:2]
             13 │ [operators.known]
                ·  ────┬────
                ·      ╰── not known here
                ╰────
              help: did you mean `operator`?
        "#]],
    );
    check_edited(
        &[(r#"start = "hour""#, r#"begin = "hour""#)],
        expect![[r#"
            refused
              × unknown key `begin` in `window` of [operator.stats]
                ╭─[jobs/job.toml:21:29]
             21 │ window = { tumbling = "1h", begin = "hour" }
                ·                             ──┬──
                ·                               ╰── not known here
                ╰────
              help: known keys: tumbling, sliding, session, global, slide, offset, clock, trigger, purge, lateness,
                    start, end
        "#]],
    );
    check_edited(
        &[(r#"out-of-orderness = "10s""#, r#"disorder = "10s""#)],
        expect![[r#"
            refused
              × unknown key `disorder` in `time` of [source.trips]
                ╭─[jobs/job.toml:11:25]
             11 │ time = { column = "at", disorder = "10s" }
                ·                         ────┬───
                ·                             ╰── not known here
                ╰────
              help: known keys: column, out-of-orderness, idle, alignment, alignment-group
        "#]],
    );
    check_edited(
        &[(
            r#"path = "m.wasm""#,
            r#"path = "m.wasm"
limits = { memroy = "1MB" }"#,
        )],
        expect![[r#"
            refused
              × unknown key `memroy` in `limits` of [module.m]
               ╭─[jobs/job.toml:7:12]
             7 │ limits = { memroy = "1MB" }
               ·            ───┬──
               ·               ╰── not known here
               ╰────
              help: did you mean `memory`?
        "#]],
    );
}

#[test]
fn an_unknown_node_names_the_nearest_known_one() {
    check_edited(
        &[(r#"input = "known""#, r#"input = "knwon""#)],
        expect![[r#"
            refused
              × there is no source or operator `knwon`
                ╭─[jobs/job.toml:19:9]
             19 │ input = "knwon"
                ·         ───┬───
                ·            ╰── not known
                ╰────
              help: did you mean `known`?
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = "out""#)],
        expect![[r#"
            refused
              × `out` is a sink: nothing can read from it
                ╭─[jobs/job.toml:19:9]
             19 │ input = "out"
                ·         ──┬──
                ·           ╰── a source or an operator was expected
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = "elsewhere""#)],
        expect![[r#"
            refused
              × there is no source or operator `elsewhere`
                ╭─[jobs/job.toml:19:9]
             19 │ input = "elsewhere"
                ·         ─────┬─────
                ·              ╰── not known
                ╰────
              help: there are: trips, known, stats
        "#]],
    );
}

#[test]
fn an_unknown_port_names_the_ports_that_there_are() {
    check_edited(
        &[(r#"input = "known""#, r#"input = "known.unknwon""#)],
        expect![[r#"
            refused
              × the operator `known` has no port `unknwon`
                ╭─[jobs/job.toml:19:9]
             19 │ input = "known.unknwon"
                ·         ───────┬───────
                ·                ╰── not a port
                ╰────
              help: did you mean `unknown`?
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = "known.late""#)],
        expect![[r#"
            refused
              × the operator `known` has no `late` port
                ╭─[jobs/job.toml:19:9]
             19 │ input = "known.late"
                ·         ──────┬─────
                ·               ╰── not a port
                ╰────
              help: only operators with windows by event time have rows that come too late
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = "known.dead-letter""#)],
        expect![[r#"
            refused
              × nothing comes out of `known.dead-letter`
                ╭─[jobs/job.toml:19:9]
             19 │ input = "known.dead-letter"
                ·         ─────────┬─────────
                ·                  ╰── not a port
                ╰────
              help: set `on-error = "dead-letter"` in [operator.known]
        "#]],
    );
    check_edited(
        &[(r#"input = "trips""#, r#"input = "trips.left""#)],
        expect![[r#"
            refused
              × the source `trips` has no port `left`
                ╭─[jobs/job.toml:15:9]
             15 │ input = "trips.left"
                ·         ──────┬─────
                ·               ╰── not a port
                ╰────
              help: its ports: output
        "#]],
    );
    check_edited(
        &[(r#"input = "known""#, r#"input = { first = "known" }"#)],
        expect![[r#"
            refused
              × `stats` has no input port `first`
                ╭─[jobs/job.toml:19:11]
             19 │ input = { first = "known" }
                ·           ──┬──
                ·             ╰── not a port
                ╰────
              help: its port: input
        "#]],
    );
    check_edited(
        &[(r#"input = "stats""#, r#"input = { first = "stats" }"#)],
        expect![[r#"
            refused
              × a sink has one input, without a name
                ╭─[jobs/job.toml:25:11]
             25 │ input = { first = "stats" }
                ·           ──┬──
                ·             ╰── named here
                ╰────
              help: input = "name", or an array of names for their union
        "#]],
    );
}

#[test]
fn an_unknown_connector_or_option() {
    check_edited(
        &[(
            r#"connector = "memory"
schema"#,
            r#"connector = "memroy"
schema"#,
        )],
        expect![[r#"
            refused
              × there is no source connector `memroy`
               ╭─[jobs/job.toml:9:13]
             9 │ connector = "memroy"
               ·             ────┬───
               ·                 ╰── not known
               ╰────
              help: did you mean `memory`?
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
input"#,
            r#"connector = "file"
input"#,
        )],
        expect![[r#"
            refused
              × there is no sink connector `file`
                ╭─[jobs/job.toml:24:13]
             24 │ connector = "file"
                ·             ───┬──
                ·                ╰── not known
                ╰────
              help: there are: memory, narrow
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
schema"#,
            r#"connector = "memory"
rows = "many"
paralelism = 3
schema"#,
        )],
        expect![[r#"
            refused
              × source `trips`: expected a number
                ╭─[jobs/job.toml:10:1]
             10 │ rows = "many"
                · ──────┬──────
                ·       ╰── here
                ╰────
              × source `trips`: there is no option `paralelism`
                ╭─[jobs/job.toml:11:1]
             11 │ paralelism = 3
                · ───────┬──────
                ·        ╰── here
                ╰────
              help: did you mean `parallelism`?
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
schema"#,
            r#"connector = "memory"
format = { csv = { nul = "NA" } }
schema"#,
        )],
        expect![[r#"
            refused
              × source `trips`: there is no option `nul`: did you mean `null`?
                ╭─[jobs/job.toml:10:20]
             10 │ format = { csv = { nul = "NA" } }
                ·                    ─────┬────
                ·                         ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"connector = "memory"
input"#,
            r#"connector = "narrow"
input"#,
        )],
        expect![[r#"
            refused
              × sink `out`: expected one column, found city, hour, count
                ╭─[jobs/job.toml:24:13]
             24 │ connector = "narrow"
                ·             ────┬───
                ·                 ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn names_and_ids_are_unique() {
    check_edited(
        &[("[sink.out]", "[sink.known]")],
        expect![[r#"
            refused
              × `known` is there twice: the operator has this name, so the sink needs another
                ╭─[jobs/job.toml:13:11]
             13 │ [operator.known]
                ·           ──┬──
                ·             ╰── first
                ╰────
                ╭─[jobs/job.toml:23:7]
             23 │ [sink.known]
                ·       ──┬──
                ·         ╰── again
                ╰────
        "#]],
    );
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
id = "stats""#,
        )],
        expect![[r#"
            refused
              × the id `stats` is that of the operator of this name
                ╭─[jobs/job.toml:17:11]
             17 │ [operator.stats]
                ·           ──┬──
                ·             ╰── the name
                ╰────
                ╭─[jobs/job.toml:24:6]
             24 │ id = "stats"
                ·      ───┬───
                ·         ╰── the id
                ╰────
        "#]],
    );
    check_edited(
        &[
            (
                r#"function = "m.known""#,
                r#"id = "x"
function = "m.known""#,
            ),
            (
                r#"function = "m.stats""#,
                r#"id = "x"
function = "m.stats""#,
            ),
        ],
        expect![[r#"
            refused
              × `x` is there twice: state is kept under the id, so each operator needs its own
                ╭─[jobs/job.toml:14:6]
             14 │ id = "x"
                ·      ─┬─
                ·       ╰── first
                ╰────
                ╭─[jobs/job.toml:19:6]
             19 │ id = "x"
                ·      ─┬─
                ·       ╰── again
                ╰────
        "#]],
    );
    check_edited(
        &[("[sink.out]", r#"[sink."o.ut"]"#)],
        expect![[r#"
            refused
              × `o.ut` is no name for a sink: expected letters, digits, `_` and `-`
                ╭─[jobs/job.toml:23:7]
             23 │ [sink."o.ut"]
                ·       ───┬──
                ·          ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            "[sink.out]",
            r#"[sink.out]
id = "a/b""#,
        )],
        expect![[r#"
            refused
              × `a/b` is no id: expected letters, digits, `_`, `-` and `.`
                ╭─[jobs/job.toml:24:6]
             24 │ id = "a/b"
                ·      ──┬──
                ·        ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn grants_that_cannot_be_given_are_told_where_they_stand() {
    check_edited(
        &[(
            r#"path = "m.wasm""#,
            r#"path = "m.wasm"
allow = ["env:A", "env:UNSET", "evn:A"]"#,
        )],
        expect![[r#"
            refused
              × `allow` of [module.m]: the variable `UNSET` is not set, so it cannot be granted
               ╭─[jobs/job.toml:7:19]
             7 │ allow = ["env:A", "env:UNSET", "evn:A"]
               ·                   ─────┬─────
               ·                        ╰── not set
               ╰────
              help: set `UNSET`, or leave the grant out
              × `allow` of [module.m]: `evn:A` is not known as a grant
               ╭─[jobs/job.toml:7:32]
             7 │ allow = ["env:A", "env:UNSET", "evn:A"]
               ·                                ───┬───
               ·                                   ╰── not known
               ╰────
              help: did you mean `env:A`?
        "#]],
    );
}
