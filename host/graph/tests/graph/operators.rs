//! Builtins and policies.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn a_builtin_takes_only_what_it_knows() {
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"builtin = "union"
input = "trips"
parameters = { limit = 1 }
window = { tumbling = "1h" }"#,
        )],
        expect![[r#"
            refused
              × `parameters` goes with a `function`, not with a `builtin`
                ╭─[jobs/job.toml:16:1]
             16 │ parameters = { limit = 1 }
                · ─────┬────
                ·      ╰── leave it out
                ╰────
              × `window` goes with a `function`, not with a `builtin`
                ╭─[jobs/job.toml:17:1]
             17 │ window = { tumbling = "1h" }
                · ───┬──
                ·    ╰── leave it out
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"builtin = "watermark"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × [operator.known] needs the key `time`
                ╭─[jobs/job.toml:13:11]
             13 │ [operator.known]
                ·           ──┬──
                ·             ╰── no `time` here
                ╰────
              help: time = { column = "ts", out-of-orderness = "10s" }
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"builtin = "union"
function = "m.known"
input = "trips""#,
        )],
        expect![[r#"
            refused
              × an operator has either a `function` or a `builtin`, here are both
                ╭─[jobs/job.toml:14:1]
             14 │ builtin = "union"
                · ───┬───
                ·    ╰── leave one of them out
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"builtin = "union"
input = { left = "trips" }"#,
        )],
        expect![[r#"
            refused
              × `union` has no input port `left`
                ╭─[jobs/job.toml:15:11]
             15 │ input = { left = "trips" }
                ·           ──┬─
                ·             ╰── not a port
                ╰────
              help: its port: input
        "#]],
    );
}

#[test]
fn only_map_functions_isolate_traps() {
    check_edited(
        &[(
            r#"function = "m.stats""#,
            r#"on-trap = "isolate"
function = "m.stats""#,
        )],
        expect![[r#"
            refused
              × `stats` is an aggregate function: only calls of map functions can be run again to find the row that
              │ traps
                ╭─[jobs/job.toml:18:11]
             18 │ on-trap = "isolate"
                ·           ────┬────
                ·               ╰── leave it out
                ╰────
        "#]],
    );
}
