//! Triggers by count, by interval and by processing time.

use expect_test::expect;
use millstream_types::Clock;

use super::{Setup, check};
use crate::Trigger;

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
