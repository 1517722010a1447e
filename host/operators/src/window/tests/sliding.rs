//! Sliding windows, which share slices.

use expect_test::expect;

use super::{Setup, check};

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
