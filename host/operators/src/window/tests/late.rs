//! Rows that come after their windows have ended.

use expect_test::expect;

use super::{Setup, check};

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
