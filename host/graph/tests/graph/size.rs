//! Jobs that need more than one process has, and windows without end.

use std::path::Path;

use expect_test::expect;
use millstream_graph::{JobFile, JobFormat, Plan, SourceText};

use crate::support::{Memory, check, check_edited, edited, plan};

/// `JOB` with this window in the place of its own.
fn check_window(window: &str, expected: expect_test::Expect) {
    check_edited(&[(r#"window = { tumbling = "1h", start = "hour" }"#, window)], expected);
}

/// `JOB` with this in place of its parallelism.
fn check_parallelism(parallelism: &str, expected: expect_test::Expect) {
    check_edited(&[("parallelism = 2", parallelism)], expected);
}

#[test]
fn more_subtasks_than_a_process_has_threads_for() {
    check_parallelism(
        "parallelism = 257\nmax-parallelism = 32768",
        expect![[r#"
        refused
          × parallelism 257 is more than one process runs: at most 256, a thread each
           ╭─[jobs/job.toml:3:15]
         3 │ parallelism = 257
           ·               ─┬─
           ·                ╰── too large
           ╰────
    "#]],
    );
    let wide = edited(&[
        ("parallelism = 2", "max-parallelism = 32768"),
        ("function = \"m.known\"", "function = \"m.known\"\nparallelism = 5000"),
    ]);
    check(
        &wide,
        expect![[r#"
        refused
          × parallelism 5000 is more than one process runs: at most 256, a thread each
            ╭─[jobs/job.toml:15:15]
         15 │ parallelism = 5000
            ·               ──┬─
            ·                 ╰── too large
            ╰────
    "#]],
    );
}

#[test]
fn a_parallelism_from_outside_the_file() {
    let refused = |settings: &str| {
        let job = edited(&[("parallelism = 2", settings)]);
        let mut file = JobFile::read(SourceText::new("job.toml", job), JobFormat::Toml, &|_| None);
        file.set_parallelism(5000);
        let error = Plan::new(file, &|_: &Path| Err("not asked".to_owned()), &Memory).expect_err("too much");
        let problem = &error.0.problems()[0];
        [Some(problem.message.clone()), problem.help.clone()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    };
    expect!["parallelism 5000 cannot be: expected 1 to 128, the job's max-parallelism; raise `max-parallelism` in [job]; it then stays so for the life of the job"]
        .assert_eq(&refused(""));
    expect!["parallelism 5000 cannot be: expected 1 to 256, for each subtask is a thread of the one process that runs the job"].assert_eq(&refused("max-parallelism = 32768"));
}

#[test]
fn more_channels_than_a_process_has_memory_for() {
    let mut job = edited(&[("parallelism = 2", "parallelism = 256\nmax-parallelism = 256")]);
    for again in ["a", "b"] {
        job += &format!(
            "[operator.{again}]\nfunction = \"m.stats\"\ninput = \"known\"\nkey = [\"city\"]\nwindow = {{ tumbling = \"1h\" }}\n\
             [sink.{again}-out]\nconnector = \"memory\"\ninput = \"{again}\"\n"
        );
    }
    check(
        &job,
        expect![[r#"
        refused
          × the job needs 196608 channels between subtasks: expected at most 131072 in one process
          help: run it with a lower parallelism
          × the job needs 1024 instances of functions: expected at most 1000 in one process
          help: run it with a lower parallelism
    "#]],
    );
}

#[test]
fn limits_under_which_nothing_runs() {
    check_edited(
        &[("path = \"m.wasm\"", "path = \"m.wasm\"\nlimits = { memory = \"0B\", output = \"1B\" }")],
        expect![[r#"
            refused
              × `memory` of `limits` of [module.m] is 0B: expected at least 64KiB
               ╭─[jobs/job.toml:7:21]
             7 │ limits = { memory = "0B", output = "1B" }
               ·                     ──┬─
               ·                       ╰── too little
               ╰────
              × `output` of `limits` of [module.m] is 1B: expected at least 1KiB
               ╭─[jobs/job.toml:7:36]
             7 │ limits = { memory = "0B", output = "1B" }
               ·                                    ──┬─
               ·                                      ╰── too little
               ╰────
        "#]],
    );
}

#[test]
fn a_row_in_too_many_windows() {
    check_window(
        r#"window = { sliding = "100d", slide = "1ms" }"#,
        expect![[r#"
        refused
          × a row would be in 8640000000 windows: expected at most 100000
            ╭─[jobs/job.toml:21:38]
         21 │ window = { sliding = "100d", slide = "1ms" }
            ·                                      ──┬──
            ·                                        ╰── a window starts so often
            ╰────
          help: windows of that size with a longer `slide` fire less often
    "#]],
    );
    check_window(
        r#"window = { sliding = "1d", slide = "1s" }"#,
        expect![[r#"
        accepted
          ⚠ each row is in 86400 windows, and each of them fires for the row's key
            ╭─[jobs/job.toml:21:36]
         21 │ window = { sliding = "1d", slide = "1s" }
            ·                                    ──┬─
            ·                                      ╰── a window starts so often
            ╰────
          help: windows of that size with a longer `slide` fire less often
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
            window   sliding 1d every 1s of event time
            reads    rides int64 (from int32)
            out      city utf8, count int64
          out: sink memory
            from     stats.output
    "#]],
    );
}

#[test]
fn a_row_kept_for_too_many_windows() {
    let window = r#"window = { tumbling = "1h", start = "hour" }"#;
    let content = ("m.stats", "m.content");
    check_edited(
        &[content, (window, r#"window = { sliding = "1d", slide = "1m" }"#)],
        expect![[r#"
        refused
          × `content` sees whole windows, and each row would be kept for 1440 of them: expected at most 1000
            ╭─[jobs/job.toml:21:1]
         21 │ window = { sliding = "1d", slide = "1m" }
            · ───┬──
            ·    ╰── windows overlap so much
            ╰────
          help: an aggregate function keeps one accumulator in the place of rows
    "#]],
    );
}

#[test]
fn accumulators_that_do_not_merge() {
    let first = ("m.stats", "m.first");
    let window = r#"window = { tumbling = "1h", start = "hour" }"#;
    check_edited(
        &[first, (window, r#"window = { session = "1h" }"#)],
        expect![[r#"
        refused
          × `first` cannot merge accumulators, which session windows need
            ╭─[jobs/job.toml:18:12]
         18 │ function = "m.first"
            ·            ────┬────
            ·                ╰── merges nothing
            ╰────
            ╭─[jobs/job.toml:21:1]
         21 │ window = { session = "1h" }
            · ───┬──
            ·    ╰── merges
            ╰────
          help: give the function a `merge`, or use a tumbling or global window
    "#]],
    );
    check_edited(
        &[first, (window, r#"window = { sliding = "1h", slide = "1m" }"#)],
        expect![[r#"
        refused
          × `first` cannot merge accumulators, which sliding windows need
            ╭─[jobs/job.toml:18:12]
         18 │ function = "m.first"
            ·            ────┬────
            ·                ╰── merges nothing
            ╰────
            ╭─[jobs/job.toml:21:1]
         21 │ window = { sliding = "1h", slide = "1m" }
            · ───┬──
            ·    ╰── merges
            ╰────
          help: give the function a `merge`, or use a tumbling or global window
    "#]],
    );
    for good in [r#"window = { sliding = "1h", slide = "1h" }"#, "window = { global = true }", window] {
        let job = edited(&[first, (window, good)]);
        assert!(plan(&job).is_ok(), "{good}");
    }
}
