//! Sessions.

use expect_test::expect;
use millstream_types::Clock;

use super::{Setup, check};
use crate::Trigger;

#[test]
fn rows_that_touch_are_one_session_of_their_key() {
    let script = ["@0 a 1; @5 b 2; @10 a 4; @21 a 8", "watermark 14", "watermark 19", "end"];
    check(
        Setup::session(10),
        &script,
        expect![[r#"
        @0 a 1; @5 b 2; @10 a 4; @21 a 8
        watermark 14
            0: @14 b 5 15 1 2
            watermark 14
        watermark 19
            0: @19 a 0 20 2 5
            watermark 19
        end
            0: @30 a 21 31 1 8
            watermark end
    "#]],
    );
    check(
        Setup::session(10).contents(),
        &script,
        expect![[r#"
        @0 a 1; @5 b 2; @10 a 4; @21 a 8
        watermark 14
            0: @14 b 5 15 2@5
            watermark 14
        watermark 19
            0: @19 a 0 20 1@0,4@10
            watermark 19
        end
            0: @30 a 21 31 8@21
            watermark end
    "#]],
    );
}

#[test]
fn a_row_between_sessions_merges_them() {
    let script = ["@0 a 1; @20 a 2; @40 a 4; @40 b 8", "@30 a 16; @10 a 32", "end"];
    check(
        Setup::session(10),
        &script,
        expect![[r#"
        @0 a 1; @20 a 2; @40 a 4; @40 b 8
        @30 a 16; @10 a 32
        end
            0: @49 a 0 50 5 55
            0: @49 b 40 50 1 8
            watermark end
    "#]],
    );
    check(
        Setup::session(10).contents(),
        &script,
        expect![[r#"
        @0 a 1; @20 a 2; @40 a 4; @40 b 8
        @30 a 16; @10 a 32
        end
            0: @49 a 0 50 1@0,4@40,2@20,16@30,32@10
            0: @49 b 40 50 8@40
            watermark end
    "#]],
    );
}

#[test]
fn late_rows_are_dropped_unless_they_join_a_session_that_lives() {
    let script = ["@8 a 1; @20 b 2", "watermark 15", "@0 a 4; @5 b 8; @3 c 16; @14 b 32", "end"];
    check(
        Setup { late_port: true, ..Setup::session(10) },
        &script,
        expect![[r#"
        @8 a 1; @20 b 2
        watermark 15
            watermark 15
        @0 a 4; @5 b 8; @3 c 16; @14 b 32
            1: @5 b 8
            1: @3 c 16
        end
            0: @17 a 0 18 2 5
            0: @29 b 14 30 2 34
            watermark end
    "#]],
    );
    check(
        Setup::session(10).contents(),
        &script,
        expect![[r#"
        @8 a 1; @20 b 2
        watermark 15
            watermark 15
        @0 a 4; @5 b 8; @3 c 16; @14 b 32
        end
            0: @17 a 0 18 1@8,4@0
            0: @29 b 14 30 2@20,32@14
            watermark end
        late dropped: 2
    "#]],
    );
}

#[test]
fn late_rows_within_the_lateness_fire_their_session_again() {
    let script = [
        "@0 a 1",
        "watermark 12",
        "@2 a 2; @1 b 4",
        "@4 a 8",
        "watermark 13",
        "watermark 30",
        "@4 a 16",
        "end",
    ];
    let setup = Setup { lateness: 10, ..Setup::session(10) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @0 a 1
        watermark 12
            0: @9 a 0 10 1 1
            watermark 12
        @2 a 2; @1 b 4
            0: @11 a 0 12 2 3
            0: @10 b 1 11 1 4
        @4 a 8
        watermark 13
            0: @13 a 0 14 3 11
            watermark 13
        watermark 30
            watermark 30
        @4 a 16
        end
            watermark end
        late dropped: 1
    "#]],
    );
    check(
        setup.clone().contents(),
        &script,
        expect![[r#"
        @0 a 1
        watermark 12
            0: @9 a 0 10 1@0
            watermark 12
        @2 a 2; @1 b 4
            0: @11 a 0 12 1@0,2@2
            0: @10 b 1 11 4@1
        @4 a 8
        watermark 13
            0: @13 a 0 14 1@0,2@2,8@4
            watermark 13
        watermark 30
            watermark 30
        @4 a 16
        end
            watermark end
        late dropped: 1
    "#]],
    );
    check(
        Setup { purging: true, ..setup },
        &script,
        expect![[r#"
        @0 a 1
        watermark 12
            0: @9 a 0 10 1 1
            watermark 12
        @2 a 2; @1 b 4
            0: @11 a 0 12 1 2
            0: @10 b 1 11 1 4
        @4 a 8
        watermark 13
            0: @13 a 0 14 1 8
            watermark 13
        watermark 30
            watermark 30
        @4 a 16
        end
            watermark end
        late dropped: 1
    "#]],
    );
}

#[test]
fn sessions_of_many_keys_fire_in_steps() {
    let script = ["@0 a 1; @1 b 1; @2 c 1; @3 d 1; @4 e 1; @5 f 1; @6 g 1", "end"];
    check(
        Setup::session(10),
        &script,
        expect![[r#"
        @0 a 1; @1 b 1; @2 c 1; @3 d 1; @4 e 1; @5 f 1; @6 g 1
        end
            0: @9 a 0 10 1 1
            0: @10 b 1 11 1 1
            0: @11 c 2 12 1 1
            0: @12 d 3 13 1 1
            0: @13 e 4 14 1 1
            0: @14 f 5 15 1 1
            0: @15 g 6 16 1 1
            watermark end
    "#]],
    );
}

#[test]
fn a_continuous_trigger_fires_open_sessions() {
    let trigger = Trigger::Continuous { clock: Clock::Event, interval: 10 };
    let script =
        ["@1 a 1; @3 b 2; @4 c 4; @5 d 8; @12 e 16", "watermark 10", "@8 a 32", "watermark 20", "end"];
    let setup = Setup { trigger, ..Setup::session(10) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @1 a 1; @3 b 2; @4 c 4; @5 d 8; @12 e 16
        watermark 10
            0: @10 a 1 11 1 1
            0: @12 b 3 13 1 2
            0: @13 c 4 14 1 4
            0: @14 d 5 15 1 8
            watermark 10
        @8 a 32
        watermark 20
            0: @12 b 3 13 1 2
            0: @13 c 4 14 1 4
            0: @14 d 5 15 1 8
            0: @17 a 8 18 1 32
            0: @21 e 12 22 1 16
            watermark 20
        end
            0: @21 e 12 22 1 16
            watermark end
    "#]],
    );
    check(
        setup.clone().contents(),
        &script,
        expect![[r#"
        @1 a 1; @3 b 2; @4 c 4; @5 d 8; @12 e 16
        watermark 10
            0: @10 a 1 11 1@1
            0: @12 b 3 13 2@3
            0: @13 c 4 14 4@4
            0: @14 d 5 15 8@5
            watermark 10
        @8 a 32
        watermark 20
            0: @12 b 3 13 2@3
            0: @13 c 4 14 4@4
            0: @14 d 5 15 8@5
            0: @17 a 8 18 32@8
            0: @21 e 12 22 16@12
            watermark 20
        end
            0: @21 e 12 22 16@12
            watermark end
    "#]],
    );
    check(
        Setup { purging: true, ..setup },
        &script,
        expect![[r#"
        @1 a 1; @3 b 2; @4 c 4; @5 d 8; @12 e 16
        watermark 10
            0: @10 a 1 11 1 1
            0: @12 b 3 13 1 2
            0: @13 c 4 14 1 4
            0: @14 d 5 15 1 8
            watermark 10
        @8 a 32
        watermark 20
            0: @17 a 8 18 1 32
            0: @21 e 12 22 1 16
            watermark 20
        end
            watermark end
    "#]],
    );
}

#[test]
fn a_count_trigger_counts_joined_sessions_together() {
    let script = ["@0 a 1; @20 a 2; @10 a 4; @40 a 8; @41 a 16; @42 a 32; @0 b 64", "end"];
    let setup = Setup { trigger: Trigger::Count(3), ..Setup::session(10) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @0 a 1; @20 a 2; @10 a 4; @40 a 8; @41 a 16; @42 a 32; @0 b 64
            0: @29 a 0 30 3 7
            0: @51 a 40 52 3 56
        end
            watermark end
    "#]],
    );
    check(
        setup.contents(),
        &script,
        expect![[r#"
        @0 a 1; @20 a 2; @10 a 4; @40 a 8; @41 a 16; @42 a 32; @0 b 64
            0: @29 a 0 30 1@0,2@20,4@10
            0: @51 a 40 52 8@40,16@41,32@42
        end
            watermark end
    "#]],
    );
}

#[test]
fn the_end_of_a_session_purges_nothing_that_has_not_fired() {
    let script = ["@1 a 1; @2 a 2", "watermark 15", "@3 a 4", "end"];
    let setup = Setup { trigger: Trigger::Count(3), purging: true, lateness: 20, ..Setup::session(10) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @1 a 1; @2 a 2
        watermark 15
            watermark 15
        @3 a 4
            0: @12 a 1 13 3 7
        end
            watermark end
    "#]],
    );
    check(
        setup.contents(),
        &script,
        expect![[r#"
        @1 a 1; @2 a 2
        watermark 15
            watermark 15
        @3 a 4
            0: @12 a 1 13 1@1,2@2,4@3
        end
            watermark end
    "#]],
    );
}

#[test]
fn processing_time_sessions_go_by_the_clock() {
    let setup = Setup { clock: Clock::Processing, ..Setup::session(10) };
    check(
        setup,
        &["time 3", "a 1", "time 9", "a 2; b 4", "time 18", "time 19", "b 8", "end"],
        expect![[r#"
        time 3
        a 1
        time 9
        a 2; b 4
        time 18
        time 19
            0: @18 a 3 19 2 3
            0: @18 b 9 19 1 4
        b 8
        end
            watermark end
        timers dropped: 1
    "#]],
    );
}

#[test]
fn a_refused_row_makes_its_session_longer_and_no_more() {
    let script = ["@0 a 1", "@5 a -1; @0 b -1", "end"];
    check(
        Setup::session(10),
        &script,
        expect![[r#"
        @0 a 1
        @5 a -1; @0 b -1
        end
            0: @14 a 0 15 1 1
            watermark end
        rejected: 2
    "#]],
    );
}
