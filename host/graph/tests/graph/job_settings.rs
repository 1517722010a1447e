//! `state` and `checkpoint` of `[job]`.

use expect_test::expect;
use millstream_types::Alignment;

use crate::support::{check_edited, edited, plan};

#[test]
fn state_on_disk() {
    let with = |state: &str| format!("parallelism = 2\nstate = {{ {state} }}");
    check_edited(
        &[("parallelism = 2", &with(r#"backend = "rocksdb", memory = "64MB", dir = "state""#))],
        expect![[r#"
            accepted
            job rides: parallelism 2, 2 slots, 2 tasks
            state in rocksdb with 64 MB of memory
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
        &[("parallelism = 2", &with(r#"backend = "rocks-db", memory = "1KB""#))],
        expect![[r#"
            refused
              × `backend` of `state` of [job] is "rocks-db": expected "memory" or "rocksdb"
               ╭─[jobs/job.toml:4:21]
             4 │ state = { backend = "rocks-db", memory = "1KB" }
               ·                     ─────┬────
               ·                          ╰── not one of them
               ╰────
              × `memory` of `state` of [job] is 1000B: expected at least 16384KiB
               ╭─[jobs/job.toml:4:42]
             4 │ state = { backend = "rocks-db", memory = "1KB" }
               ·                                          ──┬──
               ·                                            ╰── too little
               ╰────
        "#]],
    );
    check_edited(
        &[("parallelism = 2", &with(r#"backend = "rocksdb", memory = "1MB", folder = "x""#))],
        expect![[r#"
            refused
              × `memory` of `state` of [job] is 1000000B: expected at least 16384KiB
               ╭─[jobs/job.toml:4:41]
             4 │ state = { backend = "rocksdb", memory = "1MB", folder = "x" }
               ·                                         ──┬──
               ·                                           ╰── too little
               ╰────
              × unknown key `folder` in `state` of [job]
               ╭─[jobs/job.toml:4:48]
             4 │ state = { backend = "rocksdb", memory = "1MB", folder = "x" }
               ·                                                ───┬──
               ·                                                   ╰── not known here
               ╰────
              help: known keys: ttl, backend, memory, dir
        "#]],
    );
}

#[test]
fn state_that_expires() {
    let with = |state: &str| format!("parallelism = 2\nstate = {{ {state} }}");
    let settings =
        |state: &str| plan(&edited(&[("parallelism = 2", &with(state))])).expect("fits").logical.job;
    let hour = std::time::Duration::from_secs(3600);
    assert_eq!(settings("ttl = \"1h\"").state_ttl, Some(hour));
    assert_eq!(settings("backend = \"rocksdb\", ttl = \"1h\"").state_ttl, Some(hour));
    assert_eq!(settings("backend = \"memory\"").state_ttl, None);
    let of_map = ("function = \"m.known\"", "function = \"m.known\"\nstate-ttl = \"1h\"");
    check_edited(
        &[of_map],
        expect![[r#"
        refused
          × `known` is a map function, which keeps nothing that could expire
            ╭─[jobs/job.toml:15:13]
         15 │ state-ttl = "1h"
            ·             ──┬─
            ·               ╰── leave it out
            ╰────
          help: windows go by themselves; `state-ttl` is for process functions
    "#]],
    );
}

#[test]
fn unaligned_checkpoints() {
    let with = |checkpoint: &str| format!("parallelism = 2\ncheckpoint = {{ {checkpoint} }}");
    let alignment = |checkpoint: &str| {
        let plan = plan(&edited(&[("parallelism = 2", &with(checkpoint))])).expect("fits");
        plan.logical.job.checkpoint.expect("it is there").alignment
    };
    assert_eq!(alignment("unaligned = false"), Alignment::Aligned);
    assert_eq!(alignment("unaligned = true, aligned-timeout = \"0s\""), Alignment::Unaligned);
    let ten = Alignment::AlignedFor(std::time::Duration::from_secs(10));
    assert_eq!(alignment("mode = \"exactly-once\", unaligned = true, aligned-timeout = \"10s\""), ten);
    check_edited(
        &[("parallelism = 2", &with("mode = \"at-least-once\", unaligned = true, aligned-timeout = \"1s\""))],
        expect![[r#"
            refused
              × `unaligned` does not go with `mode = "at-least-once"`, which waits for no channel anyway: barriers
              │ overtake rows so that each counts exactly once without waiting
               ╭─[jobs/job.toml:4:23]
             4 │ checkpoint = { mode = "at-least-once", unaligned = true, aligned-timeout = "1s" }
               ·                       ───────┬───────              ──┬─
               ·                              │                       ╰── here
               ·                              ╰── this mode
               ╰────
              help: leave out `mode`, or `unaligned`
        "#]],
    );
    check_edited(
        &[("parallelism = 2", &with("unaligned = false, aligned-timeout = \"10s\""))],
        expect![[r#"
            refused
              × `aligned-timeout` says when barriers overtake, which they do only with `unaligned = true`
               ╭─[jobs/job.toml:4:53]
             4 │ checkpoint = { unaligned = false, aligned-timeout = "10s" }
               ·                                                     ──┬──
               ·                                                       ╰── here
               ╰────
        "#]],
    );
    check_edited(
        &[("parallelism = 2", &with("unaligned = true, aligned-timeout = \"10s\", timeout = \"5s\""))],
        expect![[r#"
            refused
              × `aligned-timeout` is 10s, and the checkpoint is given up after 5s: expected less than its `timeout`
               ╭─[jobs/job.toml:4:52]
             4 │ checkpoint = { unaligned = true, aligned-timeout = "10s", timeout = "5s" }
               ·                                                    ──┬──
               ·                                                      ╰── too long
               ╰────
        "#]],
    );
}
