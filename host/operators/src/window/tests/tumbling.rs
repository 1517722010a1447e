//! Tumbling windows, and what all windows that keys share have in common.

use expect_test::expect;
use millstream_operator::RowPolicy;

use super::{Setup, check};
use crate::WindowAssigner;

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
