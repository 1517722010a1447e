//! What stands in the text: variables, syntax, and what this version does not have.

use expect_test::expect;

use crate::support::{check, check_edited};

#[test]
fn what_this_version_has_not() {
    check_edited(
        &[(r#"path = "m.wasm""#, r#"ref = "m@1.0.0""#)],
        expect![[r#"
            refused
              × modules in a cluster's store are not available in this version: use `path`
               ╭─[jobs/job.toml:6:1]
             6 │ ref = "m@1.0.0"
               · ─┬─
               ·  ╰── not available
               ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.lookup"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × `lookup` cannot run: asynchronous functions are not available in this version
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.lookup"
                ·            ─────┬────
                ·                 ╰── this function
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.join"
input = { left = "trips", right = "trips" }
key = ["city"]"#,
        )],
        expect![[r#"
            refused
              × `join` cannot run: functions with several inputs are not available in this version
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.join"
                ·            ────┬───
                ·                ╰── this function
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.rules"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × `rules` cannot run: broadcast inputs are not available in this version
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.rules"
                ·            ────┬────
                ·                ╰── this function
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.reserved"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × `reserved` has an output port `late`, a name that is reserved
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.reserved"
                ·            ──────┬─────
                ·                  ╰── this function
                ╰────
        "#]],
    );
}

#[test]
fn variables_are_replaced_and_have_to_be_set() {
    check_edited(
        &[(r#"path = "m.wasm""#, r#"path = "${MODULES}/m.wasm""#)],
        expect![[r#"
            refused
              × the variable `MODULES` is not set and has no default
               ╭─[jobs/job.toml:6:8]
             6 │ path = "${MODULES}/m.wasm"
               ·        ─────────┬─────────
               ·                 ╰── here
               ╰────
              help: set it, or give a default: "${MODULES:-default}"
        "#]],
    );
    check_edited(
        &[(r#"path = "m.wasm""#, r#"path = "${MODULES:-.}/${""#)],
        expect![[r#"
            refused
              × `${` without a `}` behind it
               ╭─[jobs/job.toml:6:8]
             6 │ path = "${MODULES:-.}/${"
               ·        ─────────┬────────
               ·                 ╰── here
               ╰────
              help: write "$${" for a "${" that is not a variable
        "#]],
    );
    check_edited(
        &[(r#"path = "m.wasm""#, r#"path = "${MODULES:-other.wasm}""#)],
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
fn text_that_is_no_toml() {
    check(
        r#"[job
name = "x"
"#,
        expect![[r#"
            refused
              × not valid TOML: unclosed table, expected `]`
               ╭─[jobs/job.toml:1:5]
             1 │ [job
               ╰────
        "#]],
    );
    check(
        r#"[job]
name = "x"
name = "y"
"#,
        expect![[r#"
            refused
              × not valid TOML: duplicate key
               ╭─[jobs/job.toml:3:1]
             3 │ name = "y"
               · ──┬─
               ·   ╰── here
               ╰────
        "#]],
    );
    check(
        r#"[job]
name = "x"
parallelism = 99999999999999999999
[source.s]
connector = "memory"
rows = inf
schema = { a = "int64" }
"#,
        expect![[r#"
            refused
              × the number is larger than 64 bits hold
               ╭─[jobs/job.toml:3:15]
             3 │ parallelism = 99999999999999999999
               ·               ──────────┬─────────
               ·                         ╰── here
               ╰────
              × the number is not finite
               ╭─[jobs/job.toml:6:8]
             6 │ rows = inf
               ·        ─┬─
               ·         ╰── here
               ╰────
        "#]],
    );
}
