//! Windows that all keys share.

use expect_test::expect;
use millstream_operator::RowPolicy;
use millstream_types::Clock;

use super::{Setup, check};
use crate::{Trigger, WindowAssigner};

#[test]
fn tumbling_windows_fire_in_the_order_of_their_ends() {
    let script = [
        "@1 a 1; @11 a 2; @3 b 3; @2 a 4",
        "watermark 8",
        "watermark 9",
        "@12 a 5; @25 c 6",
        "watermark 24",
        "end",
    ];
    check(
        Setup::tumbling(10),
        &script,
        expect![[r#"
        @1 a 1; @11 a 2; @3 b 3; @2 a 4
        watermark 8
            watermark 8
        watermark 9
            0: @9 a 0 10 2 5
            0: @9 b 0 10 1 3
            watermark 9
        @12 a 5; @25 c 6
        watermark 24
            0: @19 a 10 20 2 7
            watermark 24
        end
            0: @29 c 20 30 1 6
            watermark end
    "#]],
    );
    check(
        Setup::tumbling(10).contents(),
        &script,
        expect![[r#"
        @1 a 1; @11 a 2; @3 b 3; @2 a 4
        watermark 8
            watermark 8
        watermark 9
            0: @9 a 0 10 1@1,4@2
            0: @9 b 0 10 3@3
            watermark 9
        @12 a 5; @25 c 6
        watermark 24
            0: @19 a 10 20 2@11,5@12
            watermark 24
        end
            0: @29 c 20 30 6@25
            watermark end
    "#]],
    );
}

#[test]
fn windows_can_be_offset_and_lie_before_the_epoch() {
    let setup = Setup::new(WindowAssigner::Tumbling { size: 10, offset: 3 });
    check(
        setup,
        &["@-8 a 1; @-7 a 2; @2 a 4; @3 a 8", "end"],
        expect![[r#"
        @-8 a 1; @-7 a 2; @2 a 4; @3 a 8
        end
            0: @-8 a -17 -7 1 1
            0: @2 a -7 3 2 6
            0: @12 a 3 13 1 8
            watermark end
    "#]],
    );
}

#[test]
fn many_small_windows_share_a_call_and_large_ones_are_cut() {
    let script = ["@1 a 1; @2 b 1; @3 c 1; @4 d 1; @5 e 1; @11 a 1; @21 a 1; @31 a 1; @41 a 1", "end"];
    check(
        Setup::tumbling(10),
        &script,
        expect![[r#"
        @1 a 1; @2 b 1; @3 c 1; @4 d 1; @5 e 1; @11 a 1; @21 a 1; @31 a 1; @41 a 1
        end
            0: @9 a 0 10 1 1
            0: @9 b 0 10 1 1
            0: @9 c 0 10 1 1
            0: @9 d 0 10 1 1
            0: @9 e 0 10 1 1
            0: @19 a 10 20 1 1
            0: @29 a 20 30 1 1
            0: @39 a 30 40 1 1
            0: @49 a 40 50 1 1
            watermark end
    "#]],
    );
    check(
        Setup::tumbling(10).contents(),
        &script,
        expect![[r#"
        @1 a 1; @2 b 1; @3 c 1; @4 d 1; @5 e 1; @11 a 1; @21 a 1; @31 a 1; @41 a 1
        end
            0: @9 a 0 10 1@1
            0: @9 b 0 10 1@2
            0: @9 c 0 10 1@3
            0: @9 d 0 10 1@4
            0: @9 e 0 10 1@5
            0: @19 a 10 20 1@11
            0: @29 a 20 30 1@21
            0: @39 a 30 40 1@31
            0: @49 a 40 50 1@41
            watermark end
    "#]],
    );
}

#[test]
fn late_rows_are_dropped_and_counted_or_go_to_their_port() {
    let script = ["@1 a 1", "watermark 9", "@5 a 2; @12 a 3; @9 b 4", "@10 a 5", "end"];
    check(
        Setup::tumbling(10),
        &script,
        expect![[r#"
        @1 a 1
        watermark 9
            0: @9 a 0 10 1 1
            watermark 9
        @5 a 2; @12 a 3; @9 b 4
        @10 a 5
        end
            0: @19 a 10 20 2 8
            watermark end
        late dropped: 2
    "#]],
    );
    check(
        Setup { late_port: true, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1
        watermark 9
            0: @9 a 0 10 1 1
            watermark 9
        @5 a 2; @12 a 3; @9 b 4
            1: @5 a 2
            1: @9 b 4
        @10 a 5
        end
            0: @19 a 10 20 2 8
            watermark end
    "#]],
    );
}

#[test]
fn late_rows_within_the_lateness_fire_their_window_again() {
    let script = [
        "@1 a 1; @2 b 2",
        "watermark 12",
        "@3 a 3; @4 a 4; @13 a 5",
        "watermark 13",
        "@5 c 6",
        "watermark 14",
        "@6 a 7",
        "end",
    ];
    let setup = Setup { lateness: 5, late_port: true, ..Setup::tumbling(10) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @1 a 1; @2 b 2
        watermark 12
            0: @9 a 0 10 1 1
            0: @9 b 0 10 1 2
            watermark 12
        @3 a 3; @4 a 4; @13 a 5
            0: @9 a 0 10 3 8
        watermark 13
            watermark 13
        @5 c 6
            0: @9 c 0 10 1 6
        watermark 14
            watermark 14
        @6 a 7
            1: @6 a 7
        end
            0: @19 a 10 20 1 5
            watermark end
    "#]],
    );
    check(
        setup.clone().contents(),
        &script,
        expect![[r#"
        @1 a 1; @2 b 2
        watermark 12
            0: @9 a 0 10 1@1
            0: @9 b 0 10 2@2
            watermark 12
        @3 a 3; @4 a 4; @13 a 5
            0: @9 a 0 10 1@1,3@3,4@4
        watermark 13
            watermark 13
        @5 c 6
            0: @9 c 0 10 6@5
        watermark 14
            watermark 14
        @6 a 7
            1: @6 a 7
        end
            0: @19 a 10 20 5@13
            watermark end
    "#]],
    );
    check(
        Setup { purging: true, ..setup },
        &script,
        expect![[r#"
        @1 a 1; @2 b 2
        watermark 12
            0: @9 a 0 10 1 1
            0: @9 b 0 10 1 2
            watermark 12
        @3 a 3; @4 a 4; @13 a 5
            0: @9 a 0 10 2 7
        watermark 13
            watermark 13
        @5 c 6
            0: @9 c 0 10 1 6
        watermark 14
            watermark 14
        @6 a 7
            1: @6 a 7
        end
            0: @19 a 10 20 1 5
            watermark end
    "#]],
    );
}

#[test]
fn sliding_windows_share_slices() {
    let script =
        ["@1 a 1; @5 a 2; @7 b 4; @11 a 8", "watermark 5", "watermark 13", "@8 a 16; @3 a 32", "end"];
    check(
        Setup::sliding(10, 4),
        &script,
        expect![[r#"
        @1 a 1; @5 a 2; @7 b 4; @11 a 8
        watermark 5
            0: @1 a -8 2 1 1
            0: @5 a -4 6 2 3
            watermark 5
        watermark 13
            0: @9 a 0 10 2 3
            0: @9 b 0 10 1 4
            0: @13 a 4 14 2 10
            0: @13 b 4 14 1 4
            watermark 13
        @8 a 16; @3 a 32
        end
            0: @17 a 8 18 2 24
            watermark end
        late dropped: 1
    "#]],
    );
    check(
        Setup::sliding(10, 4).contents(),
        &script,
        expect![[r#"
        @1 a 1; @5 a 2; @7 b 4; @11 a 8
        watermark 5
            0: @1 a -8 2 1@1
            0: @5 a -4 6 1@1,2@5
            watermark 5
        watermark 13
            0: @9 a 0 10 1@1,2@5
            0: @9 b 0 10 4@7
            0: @13 a 4 14 2@5,8@11
            0: @13 b 4 14 4@7
            watermark 13
        @8 a 16; @3 a 32
        end
            0: @17 a 8 18 8@11,16@8
            watermark end
        late dropped: 1
    "#]],
    );
}

#[test]
fn windows_of_many_slices_are_merged_from_what_they_share() {
    let script = [
        "@0 a 1; @3 a 2; @3 b 4; @9 a 8; @12 b 16",
        "watermark 4",
        "@4 a 32; @2 a 64",
        "watermark 12",
        "@6 b 128; @11 a 256",
        "watermark 13",
        "end",
    ];
    check(
        Setup::sliding(10, 1),
        &script[..2],
        expect![[r#"
        @0 a 1; @3 a 2; @3 b 4; @9 a 8; @12 b 16
        watermark 4
            0: @0 a -9 1 1 1
            0: @1 a -8 2 1 1
            0: @2 a -7 3 1 1
            0: @3 a -6 4 2 3
            0: @3 b -6 4 1 4
            0: @4 a -5 5 2 3
            0: @4 b -5 5 1 4
            watermark 4
    "#]],
    );
    check(
        Setup::sliding(10, 5),
        &script,
        expect![[r#"
        @0 a 1; @3 a 2; @3 b 4; @9 a 8; @12 b 16
        watermark 4
            0: @4 a -5 5 2 3
            0: @4 b -5 5 1 4
            watermark 4
        @4 a 32; @2 a 64
        watermark 12
            0: @9 a 0 10 5 107
            0: @9 b 0 10 1 4
            watermark 12
        @6 b 128; @11 a 256
        watermark 13
            watermark 13
        end
            0: @14 a 5 15 2 264
            0: @14 b 5 15 2 144
            0: @19 b 10 20 1 16
            0: @19 a 10 20 1 256
            watermark end
    "#]],
    );
    check(
        Setup { lateness: 3, ..Setup::sliding(8, 2) },
        &script,
        expect![[r#"
        @0 a 1; @3 a 2; @3 b 4; @9 a 8; @12 b 16
        watermark 4
            0: @1 a -6 2 1 1
            0: @3 a -4 4 2 3
            0: @3 b -4 4 1 4
            watermark 4
        @4 a 32; @2 a 64
            0: @3 a -4 4 3 67
        watermark 12
            0: @5 a -2 6 4 99
            0: @5 b -2 6 1 4
            0: @7 a 0 8 4 99
            0: @7 b 0 8 1 4
            0: @9 a 2 10 4 106
            0: @9 b 2 10 1 4
            0: @11 a 4 12 2 40
            watermark 12
        @6 b 128; @11 a 256
            0: @11 b 4 12 1 128
            0: @11 a 4 12 3 296
        watermark 13
            0: @13 b 6 14 2 144
            0: @13 a 6 14 2 264
            watermark 13
        end
            0: @15 a 8 16 2 264
            0: @15 b 8 16 1 16
            0: @17 a 10 18 1 256
            0: @17 b 10 18 1 16
            0: @19 b 12 20 1 16
            watermark end
    "#]],
    );
    check(
        Setup { lateness: 3, ..Setup::sliding(16, 2) },
        &script,
        expect![[r#"
        @0 a 1; @3 a 2; @3 b 4; @9 a 8; @12 b 16
        watermark 4
            0: @1 a -14 2 1 1
            0: @3 a -12 4 2 3
            0: @3 b -12 4 1 4
            watermark 4
        @4 a 32; @2 a 64
            0: @3 a -12 4 3 67
        watermark 12
            0: @5 a -10 6 4 99
            0: @5 b -10 6 1 4
            0: @7 a -8 8 4 99
            0: @7 b -8 8 1 4
            0: @9 a -6 10 5 107
            0: @9 b -6 10 1 4
            0: @11 a -4 12 5 107
            0: @11 b -4 12 1 4
            watermark 12
        @6 b 128; @11 a 256
            0: @11 b -4 12 2 132
            0: @11 a -4 12 6 363
        watermark 13
            0: @13 a -2 14 6 363
            0: @13 b -2 14 3 148
            watermark 13
        end
            0: @15 a 0 16 6 363
            0: @15 b 0 16 3 148
            0: @17 a 2 18 5 362
            0: @17 b 2 18 3 148
            0: @19 a 4 20 3 296
            0: @19 b 4 20 2 144
            0: @21 b 6 22 2 144
            0: @21 a 6 22 2 264
            0: @23 a 8 24 2 264
            0: @23 b 8 24 1 16
            0: @25 a 10 26 1 256
            0: @25 b 10 26 1 16
            0: @27 b 12 28 1 16
            watermark end
    "#]],
    );
}

#[test]
fn late_rows_fire_the_sliding_windows_that_still_take_them() {
    let script = [
        "@1 a 1; @7 a 2; @7 b 4",
        "watermark 14",
        "@6 a 8; @9 c 16; @7 a 32",
        "watermark 17",
        "@2 a 64",
        "end",
    ];
    let setup = Setup { lateness: 6, late_port: true, ..Setup::sliding(10, 4) };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        @1 a 1; @7 a 2; @7 b 4
        watermark 14
            0: @1 a -8 2 1 1
            0: @5 a -4 6 1 1
            0: @9 a 0 10 2 3
            0: @9 b 0 10 1 4
            0: @13 a 4 14 1 2
            0: @13 b 4 14 1 4
            watermark 14
        @6 a 8; @9 c 16; @7 a 32
            0: @9 a 0 10 4 43
            0: @9 c 0 10 1 16
            0: @13 a 4 14 3 42
            0: @13 c 4 14 1 16
        watermark 17
            0: @17 c 8 18 1 16
            watermark 17
        @2 a 64
            1: @2 a 64
        end
            watermark end
    "#]],
    );
    check(
        setup.contents(),
        &script,
        expect![[r#"
            @1 a 1; @7 a 2; @7 b 4
            watermark 14
                0: @1 a -8 2 1@1
                0: @5 a -4 6 1@1
                0: @9 a 0 10 1@1,2@7
                0: @9 b 0 10 4@7
                0: @13 a 4 14 2@7
                0: @13 b 4 14 4@7
                watermark 14
            @6 a 8; @9 c 16; @7 a 32
                0: @9 a 0 10 1@1,2@7,8@6,32@7
                0: @9 c 0 10 16@9
                0: @13 a 4 14 2@7,8@6,32@7
                0: @13 c 4 14 16@9
            watermark 17
                0: @17 c 8 18 16@9
                watermark 17
            @2 a 64
                1: @2 a 64
            end
                watermark end
        "#]],
    );
}

#[test]
fn rows_between_windows_belong_nowhere() {
    check(
        Setup::sliding(3, 10),
        &["@2 a 1; @3 a 2; @12 a 4; @9 a 8", "end"],
        expect![[r#"
        @2 a 1; @3 a 2; @12 a 4; @9 a 8
        end
            0: @2 a 0 3 1 1
            0: @12 a 10 13 1 4
            watermark end
    "#]],
    );
}

#[test]
fn the_whole_stream_is_one_key_without_columns() {
    let script = ["@1 a 1; @2 b 2; @11 c 4", "end"];
    check(
        Setup { keyed: false, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1; @2 b 2; @11 c 4
        end
            0: @9 0 10 2 3
            0: @19 10 20 1 4
            watermark end
    "#]],
    );
    check(
        Setup { keyed: false, ..Setup::sliding(10, 5) }.contents(),
        &script,
        expect![[r#"
        @1 a 1; @2 b 2; @11 c 4
        end
            0: @4 -5 5 1@1,2@2
            0: @9 0 10 1@1,2@2
            0: @14 5 15 4@11
            0: @19 10 20 4@11
            watermark end
    "#]],
    );
}

#[test]
fn a_count_trigger_fires_with_exactly_so_many_rows() {
    let script = ["a 1; a 2; b 4; a 8; a 16; a 32", "b 64", "end"];
    let setup = Setup { trigger: Trigger::Count(2), ..Setup::global() };
    check(
        setup.clone(),
        &script,
        expect![[r#"
        a 1; a 2; b 4; a 8; a 16; a 32
            0: a null null 2 3
            0: a null null 4 27
        b 64
            0: b null null 2 68
        end
            watermark end
    "#]],
    );
    check(
        setup.clone().contents(),
        &script,
        expect![[r#"
        a 1; a 2; b 4; a 8; a 16; a 32
            0: a null null 1@-9223372036854775808,2@-9223372036854775808
            0: a null null 1@-9223372036854775808,2@-9223372036854775808,8@-9223372036854775808,16@-9223372036854775808
        b 64
            0: b null null 4@-9223372036854775808,64@-9223372036854775808
        end
            watermark end
    "#]],
    );
    let purging = Setup { purging: true, ..setup };
    check(
        purging.clone(),
        &script,
        expect![[r#"
        a 1; a 2; b 4; a 8; a 16; a 32
            0: a null null 2 3
            0: a null null 2 24
        b 64
            0: b null null 2 68
        end
            watermark end
    "#]],
    );
    check(
        purging.contents(),
        &script,
        expect![[r#"
        a 1; a 2; b 4; a 8; a 16; a 32
            0: a null null 1@-9223372036854775808,2@-9223372036854775808
            0: a null null 8@-9223372036854775808,16@-9223372036854775808
        b 64
            0: b null null 4@-9223372036854775808,64@-9223372036854775808
        end
            watermark end
    "#]],
    );
}

#[test]
fn a_count_trigger_counts_each_window_for_itself() {
    let script = ["@1 a 1; @2 a 2; @6 a 4; @11 a 8; @13 a 16", "watermark 9", "@12 a 32", "end"];
    let setup = Setup { trigger: Trigger::Count(2), ..Setup::tumbling(10) };
    check(
        setup,
        &script,
        expect![[r#"
        @1 a 1; @2 a 2; @6 a 4; @11 a 8; @13 a 16
            0: @9 a 0 10 2 3
            0: @19 a 10 20 2 24
        watermark 9
            watermark 9
        @12 a 32
        end
            watermark end
    "#]],
    );
    let setup = Setup { trigger: Trigger::Count(2), ..Setup::sliding(10, 5) };
    check(
        setup,
        &["@1 a 1; @6 a 2; @7 a 4", "end"],
        expect![[r#"
            @1 a 1; @6 a 2; @7 a 4
                0: @9 a 0 10 2 3
                0: @14 a 5 15 2 6
            end
                watermark end
        "#]],
    );
}

#[test]
fn a_global_window_without_another_trigger_fires_at_the_end() {
    check(
        Setup::global(),
        &["@5 a 1; b 2", "watermark 1000", "a 4", "end"],
        expect![[r#"
        @5 a 1; b 2
        watermark 1000
            watermark 1000
        a 4
        end
            0: a null null 2 5
            0: b null null 1 2
            watermark end
    "#]],
    );
}

#[test]
fn a_continuous_trigger_fires_at_multiples_of_its_interval_and_at_the_end() {
    let trigger = Trigger::Continuous { clock: Clock::Event, interval: 4 };
    let script = [
        "@1 a 1; @11 b 2",
        "watermark 3",
        "watermark 4",
        "@5 a 4",
        "watermark 7",
        "watermark 9",
        "watermark 13",
        "end",
    ];
    check(
        Setup { trigger, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1; @11 b 2
        watermark 3
            watermark 3
        watermark 4
            0: @9 a 0 10 1 1
            watermark 4
        @5 a 4
        watermark 7
            watermark 7
        watermark 9
            0: @9 a 0 10 2 5
            watermark 9
        watermark 13
            0: @19 b 10 20 1 2
            watermark 13
        end
            0: @19 b 10 20 1 2
            watermark end
    "#]],
    );
    check(
        Setup { trigger, purging: true, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1; @11 b 2
        watermark 3
            watermark 3
        watermark 4
            0: @9 a 0 10 1 1
            watermark 4
        @5 a 4
        watermark 7
            watermark 7
        watermark 9
            0: @9 a 0 10 1 4
            watermark 9
        watermark 13
            0: @19 b 10 20 1 2
            watermark 13
        end
            watermark end
    "#]],
    );
    check(
        Setup { trigger, ..Setup::sliding(10, 5) },
        &script,
        expect![[r#"
        @1 a 1; @11 b 2
        watermark 3
            0: @4 a -5 5 1 1
            watermark 3
        watermark 4
            0: @4 a -5 5 1 1
            0: @9 a 0 10 1 1
            watermark 4
        @5 a 4
        watermark 7
            watermark 7
        watermark 9
            0: @9 a 0 10 2 5
            0: @14 a 5 15 1 4
            0: @14 b 5 15 1 2
            watermark 9
        watermark 13
            0: @14 a 5 15 1 4
            0: @14 b 5 15 1 2
            0: @19 b 10 20 1 2
            watermark 13
        end
            0: @14 a 5 15 1 4
            0: @14 b 5 15 1 2
            0: @19 b 10 20 1 2
            watermark end
    "#]],
    );
}

#[test]
fn a_continuous_trigger_can_run_on_processing_time() {
    let trigger = Trigger::Continuous { clock: Clock::Processing, interval: 100 };
    let script = ["time 30", "a 1; b 2", "time 99", "time 100", "time 150", "a 4", "time 320", "end"];
    check(
        Setup { trigger, ..Setup::global() },
        &script,
        expect![[r#"
        time 30
        a 1; b 2
        time 99
        time 100
            0: a null null 1 1
            0: b null null 1 2
        time 150
        a 4
        time 320
            0: a null null 2 5
            0: b null null 1 2
        end
            0: a null null 2 5
            0: b null null 1 2
            watermark end
    "#]],
    );
}

#[test]
fn processing_time_windows_go_by_the_clock_and_are_dropped_at_the_end() {
    let setup = Setup { clock: Clock::Processing, ..Setup::tumbling(10) };
    let script = [
        "time 3",
        "@7000 a 1; b 2",
        "time 9",
        "a 4",
        "watermark 5000",
        "time 10",
        "a 8",
        "time 25",
        "a 16",
        "end",
    ];
    check(
        setup,
        &script,
        expect![[r#"
        time 3
        @7000 a 1; b 2
        time 9
        a 4
        watermark 5000
            watermark 5000
        time 10
            0: @9 a 0 10 2 5
            0: @9 b 0 10 1 2
        a 8
        time 25
            0: @19 a 10 20 1 8
        a 16
        end
            watermark end
        timers dropped: 1
    "#]],
    );
    let setup = Setup { clock: Clock::Processing, ..Setup::sliding(10, 5) };
    check(
        setup,
        &["time 3", "a 1", "time 6", "a 2", "time 10", "time 15", "end"],
        expect![[r#"
        time 3
        a 1
        time 6
            0: @4 a -5 5 1 1
        a 2
        time 10
            0: @9 a 0 10 2 3
        time 15
            0: @14 a 5 15 1 2
        end
            watermark end
    "#]],
    );
}

#[test]
fn rows_that_cannot_be_taken_follow_the_policy() {
    let script = ["@1 a 1; a 2; @3 b -1; @4 a null; @9223372036854775807 a 3", "end"];
    check(
        Setup { policy: RowPolicy::DeadLetter, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1; a 2; @3 b -1; @4 a null; @9223372036854775807 a 3
            2: @4 window 0 null "column `v` is null and the function takes no null in it" {"key":"a","v":null}
            2: window 0 null "the row has no event time: set `time` on the source or an operator before the window" {"key":"a","v":2}
            2: @9223372036854775807 window 0 null "event time 9223372036854775807 is out of range: milliseconds since 1970 within the years 1 to 9999 expected" {"key":"a","v":3}
            2: @3 window 0 null negative {"key":"b","v":-1}
        end
            0: @9 a 0 10 1 1
            watermark end
        rejected: 4
    "#]],
    );
    check(
        Setup { policy: RowPolicy::Skip, ..Setup::tumbling(10) },
        &script,
        expect![[r#"
        @1 a 1; a 2; @3 b -1; @4 a null; @9223372036854775807 a 3
        end
            0: @9 a 0 10 1 1
            watermark end
        rejected: 4
    "#]],
    );
    check(
        Setup { policy: RowPolicy::Fail, ..Setup::tumbling(10) },
        &["@1 a 1; @3 b -1"],
        expect![[r#"
        @1 a 1; @3 b -1
            error: row refused: negative; row: {"key":"b","v":-1}; set `on-error = "skip"` or `"dead-letter"` to go on without such rows
        rejected: 1
    "#]],
    );
}

#[test]
fn a_late_group_whose_rows_are_all_refused_does_not_fire() {
    let setup = Setup { lateness: 5, ..Setup::tumbling(10) };
    check(
        setup,
        &["@1 a 1", "watermark 10", "@2 a -1; @3 b -1", "end"],
        expect![[r#"
        @1 a 1
        watermark 10
            0: @9 a 0 10 1 1
            watermark 10
        @2 a -1; @3 b -1
        end
            watermark end
        rejected: 2
    "#]],
    );
}
