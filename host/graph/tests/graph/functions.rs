//! Functions, their parameters and modules.

use expect_test::expect;

use crate::support::check_edited;

#[test]
fn a_function_without_output_cannot_be_read() {
    check_edited(
        &[(r#"function = "m.known""#, r#"function = "m.silent""#)],
        expect![[r#"
        refused
          × the operator `known` has no output: nothing can read from it
            ╭─[jobs/job.toml:19:9]
         19 │ input = "known"
            ·         ───┬───
            ·            ╰── nothing comes from here
            ╰────
    "#]],
    );
}

#[test]
fn an_unknown_module_or_function() {
    check_edited(
        &[(r#"function = "m.known""#, r#"function = "n.known""#)],
        expect![[r#"
            refused
              × there is no module `n`
                ╭─[jobs/job.toml:14:12]
             14 │ function = "n.known"
                ·            ────┬────
                ·                ╰── not a module
                ╰────
              help: there are: m
        "#]],
    );
    check_edited(
        &[(r#"function = "m.known""#, r#"function = "m.knwon""#)],
        expect![[r#"
            refused
              × the module `m` has no function `knwon`
                ╭─[jobs/job.toml:14:12]
             14 │ function = "m.knwon"
                ·            ────┬────
                ·                ╰── not a function
                ╰────
              help: did you mean `known`?
        "#]],
    );
    check_edited(
        &[(r#"function = "m.known""#, r#"function = "known""#)],
        expect![[r#"
            refused
              × `function` is "known": expected "module.function"
                ╭─[jobs/job.toml:14:12]
             14 │ function = "known"
                ·            ───┬───
                ·               ╰── no dot here
                ╰────
        "#]],
    );
    check_edited(
        &[(r#"function = "m.known""#, r#"builtin = "unoin""#)],
        expect![[r#"
            refused
              × there is no builtin "unoin": expected "union" or "watermark"
                ╭─[jobs/job.toml:14:11]
             14 │ builtin = "unoin"
                ·           ───┬───
                ·              ╰── not known
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"[module.m]
path = "m.wasm"
"#,
            "",
        )],
        expect![[r#"
            refused
              × there is no module `m`
                ╭─[jobs/job.toml:12:12]
             12 │ function = "m.known"
                ·            ────┬────
                ·                ╰── not a module
                ╰────
              help: add
                    [module.m]
                    path = "..."
              × there is no module `m`
                ╭─[jobs/job.toml:16:12]
             16 │ function = "m.stats"
                ·            ────┬────
                ·                ╰── not a module
                ╰────
              help: add
                    [module.m]
                    path = "..."
        "#]],
    );
    check_edited(
        &[(r#"path = "m.wasm""#, r#"path = "x.wasm""#)],
        expect![[r#"
            refused
              × the module `m` cannot be used: there is no file jobs/x.wasm
               ╭─[jobs/job.toml:6:8]
             6 │ path = "x.wasm"
               ·        ────┬───
               ·            ╰── this module
               ╰────
        "#]],
    );
}

#[test]
fn a_parameter_is_known_of_its_type_and_there() {
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.scale"
input = "trips"
parameters = { facto = 2.5, label = 7 }"#,
        )],
        expect![[r#"
            refused
              × `scale` has no parameter `facto`
                ╭─[jobs/job.toml:16:16]
             16 │ parameters = { facto = 2.5, label = 7 }
                ·                ──┬──
                ·                  ╰── not known
                ╰────
              help: did you mean `factor`?
              × the parameter `label` of `scale` is the integer 7: expected a string
                ╭─[jobs/job.toml:16:37]
             16 │ parameters = { facto = 2.5, label = 7 }
                ·                                     ┬
                ·                                     ╰── not utf8
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.scale"
input = "trips"
parameters = { factor = "2.5" }"#,
        )],
        expect![[r#"
            refused
              × the parameter `factor` of `scale` is the string "2.5": expected a number
                ╭─[jobs/job.toml:16:25]
             16 │ parameters = { factor = "2.5" }
                ·                         ──┬──
                ·                           ╰── not float64
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.scale"
input = "trips"
parameters = { factor = [1] }"#,
        )],
        expect![[r#"
            refused
              × `factor` of [operator.known] has to be a string, a number, true or false, found an array
                ╭─[jobs/job.toml:16:25]
             16 │ parameters = { factor = [1] }
                ·                         ─┬─
                ·                          ╰── this is an array
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
parameters = { limit = 1.5 }"#,
        )],
        expect![[r#"
            refused
              × the parameter `limit` of `known` is the number 1.5: expected an integer
                ╭─[jobs/job.toml:16:24]
             16 │ parameters = { limit = 1.5 }
                ·                        ─┬─
                ·                         ╰── not int64
                ╰────
        "#]],
    );
    check_edited(
        &[(
            r#"function = "m.known"
input = "trips""#,
            r#"function = "m.known"
input = "trips"
parameters = { limit = "${TWO}" }"#,
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
                set      limit = 2
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
