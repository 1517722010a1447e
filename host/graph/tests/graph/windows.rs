//! Windows that have no meaning, and those that have.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn one_kind_of_window() {
    check_edited(
        &[(r#"window = { tumbling = "1h", start = "hour" }"#, r#"window = { start = "hour" }"#)],
        expect![[r#"
            refused
              × a window says no kind: expected one of `tumbling`, `sliding`, `session`, `global`
                ╭─[jobs/job.toml:21:1]
             21 │ window = { start = "hour" }
                · ───┬──
                ·    ╰── here
                ╰────
              help: such as window = { tumbling = "1h" }
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "1h", session = "1h" }"#,
        )],
        expect![[r#"
            refused
              × a window says several kinds: expected one of `tumbling`, `sliding`, `session`, `global`
                ╭─[jobs/job.toml:21:1]
             21 │ window = { tumbling = "1h", session = "1h" }
                · ───┬──
                ·    ╰── here
                ╰────
              help: such as window = { tumbling = "1h" }
        "#]],
    );
    check_edited(
        &[(r#"window = { tumbling = "1h", start = "hour" }"#, r#"window = { tumbling = "0s" }"#)],
        expect![[r#"
            refused
              × `tumbling` of `window` of [operator.stats] is zero: expected at least 1ms
                ╭─[jobs/job.toml:21:23]
             21 │ window = { tumbling = "0s" }
                ·                       ──┬─
                ·                         ╰── too short
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"window = { tumbling = "1h", start = "hour" }"#, "window = { global = false }")],
        expect![[r#"
            refused
              × `global = false` is no window: leave `global` out or set it to true
                ╭─[jobs/job.toml:21:21]
             21 │ window = { global = false }
                ·                     ──┬──
                ·                       ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"window = { tumbling = "1h", start = "hour" }"#, r#"window = "1h""#)],
        expect![[r#"
            refused
              × `window` of [operator.stats] has to be a table, found a string
                ╭─[jobs/job.toml:21:10]
             21 │ window = "1h"
                ·          ──┬─
                ·            ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn slide_and_offset() {
    check_edited(
        &[(r#"window = { tumbling = "1h", start = "hour" }"#, r#"window = { sliding = "10s" }"#)],
        expect![[r#"
            refused
              × `window` of [operator.stats] needs the key `slide`
                ╭─[jobs/job.toml:21:1]
             21 │ window = { sliding = "10s" }
                · ───┬──
                ·    ╰── no `slide` here
                ╰────
              help: sliding = "10s", slide = "2s" starts a window of 10 s every 2 s
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { sliding = "10s", slide = "11s" }"#,
        )],
        expect![[r#"
            refused
              × `slide` is larger than the window: rows between windows would be lost
                ╭─[jobs/job.toml:21:37]
             21 │ window = { sliding = "10s", slide = "11s" }
                ·                                     ──┬──
                ·                                       ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { sliding = "10s", slide = "0s" }"#,
        )],
        expect![[r#"
            refused
              × `slide` of `window` of [operator.stats] is zero: expected at least 1ms
                ╭─[jobs/job.toml:21:37]
             21 │ window = { sliding = "10s", slide = "0s" }
                ·                                     ──┬─
                ·                                       ╰── too short
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", slide = "1s" }"#,
        )],
        expect![[r#"
            refused
              × `slide` goes with `sliding`, which is not there
                ╭─[jobs/job.toml:21:38]
             21 │ window = { tumbling = "10s", slide = "1s" }
                ·                                      ──┬─
                ·                                        ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", offset = "10s" }"#,
        )],
        expect![[r#"
            refused
              × `offset` has to be less than the distance between windows
                ╭─[jobs/job.toml:21:39]
             21 │ window = { tumbling = "10s", offset = "10s" }
                ·                                       ──┬──
                ·                                         ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { session = "10s", offset = "1s" }"#,
        )],
        expect![[r#"
            refused
              × `offset` goes with `tumbling` or `sliding`
                ╭─[jobs/job.toml:21:38]
             21 │ window = { session = "10s", offset = "1s" }
                ·                                      ──┬─
                ·                                        ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { sliding = "10s", slide = "2s", offset = "3s" }"#,
        )],
        expect![[r#"
            refused
              × `offset` has to be less than the distance between windows
                ╭─[jobs/job.toml:21:52]
             21 │ window = { sliding = "10s", slide = "2s", offset = "3s" }
                ·                                                    ──┬─
                ·                                                      ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn triggers() {
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", trigger = "never" }"#,
        )],
        expect![[r#"
            refused
              × `trigger` of `window` of [operator.stats] is "never": expected "event-time" or "processing-time"
                ╭─[jobs/job.toml:21:40]
             21 │ window = { tumbling = "10s", trigger = "never" }
                ·                                        ───┬───
                ·                                           ╰── not one of them
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", trigger = "processing-time" }"#,
        )],
        expect![[r#"
            refused
              × the trigger's time is not the window's: set `clock = "event"` or `"processing"` alike
                ╭─[jobs/job.toml:21:40]
             21 │ window = { tumbling = "10s", trigger = "processing-time" }
                ·                                        ────────┬────────
                ·                                                ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", trigger = { count = 0 } }"#,
        )],
        expect![[r#"
            refused
              × `count` of `trigger` of `window` of [operator.stats] is 0: expected an integer of at least 1
                ╭─[jobs/job.toml:21:50]
             21 │ window = { tumbling = "10s", trigger = { count = 0 } }
                ·                                                  ┬
                ·                                                  ╰── out of range
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", trigger = { count = 1, continuous = "1s" } }"#,
        )],
        expect![[r#"
            refused
              × a trigger is either { count = 100 } or { continuous = "10s" }
                ╭─[jobs/job.toml:21:30]
             21 │ window = { tumbling = "10s", trigger = { count = 1, continuous = "1s" } }
                ·                              ───┬───
                ·                                 ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", trigger = { counts = 1 } }"#,
        )],
        expect![[r#"
            refused
              × a trigger is either { count = 100 } or { continuous = "10s" }
                ╭─[jobs/job.toml:21:30]
             21 │ window = { tumbling = "10s", trigger = { counts = 1 } }
                ·                              ───┬───
                ·                                 ╰── here
                ╰────
              × unknown key `counts` in `trigger` of `window` of [operator.stats]
                ╭─[jobs/job.toml:21:42]
             21 │ window = { tumbling = "10s", trigger = { counts = 1 } }
                ·                                          ───┬──
                ·                                             ╰── not known here
                ╰────
              help: did you mean `count`?
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { global = true, clock = "processing" }"#,
        )],
        expect![[r#"
            refused
              × a global window by processing time never ends: it needs a `trigger`
                ╭─[jobs/job.toml:21:1]
             21 │ window = { global = true, clock = "processing" }
                · ───┬──
                ·    ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn lateness_and_bounds() {
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { tumbling = "10s", clock = "processing", lateness = "1s" }"#,
        )],
        expect![[r#"
            refused
              × nothing is late by processing time: leave `lateness` out
                ╭─[jobs/job.toml:21:63]
             21 │ window = { tumbling = "10s", clock = "processing", lateness = "1s" }
                ·                                                               ──┬─
                ·                                                                 ╰── here
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }"#,
            r#"window = { global = true, lateness = "1s", start = "from" }"#,
        )],
        expect![[r#"
            refused
              × nothing is late for a global window: leave `lateness` out
                ╭─[jobs/job.toml:21:38]
             21 │ window = { global = true, lateness = "1s", start = "from" }
                ·                                      ──┬─
                ·                                        ╰── here
                ╰────
              × a global window has neither start nor end
                ╭─[jobs/job.toml:21:52]
             21 │ window = { global = true, lateness = "1s", start = "from" }
                ·                                                    ───┬──
                ·                                                       ╰── here
                ╰────
        "#]],
    );
}

#[test]
fn who_has_windows() {
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
window = { tumbling = "1h" }"#,
        )],
        expect![[r#"
            refused
              × `known` is a map function, which has no windows
                ╭─[jobs/job.toml:16:1]
             16 │ window = { tumbling = "1h" }
                · ───┬──
                ·    ╰── leave it out
                ╰────
              help: windows go with aggregate and window functions
        "#]],
    );
    check_edited(
        &[(
            r#"window = { tumbling = "1h", start = "hour" }
"#,
            "",
        )],
        expect![[r#"
            refused
              × `stats` is an aggregate function, which needs a window
                ╭─[jobs/job.toml:18:12]
             18 │ function = "m.stats"
                ·            ────┬────
                ·                ╰── has no window
                ╰────
              help: such as window = { tumbling = "1h" }
        "#]],
    );
}
