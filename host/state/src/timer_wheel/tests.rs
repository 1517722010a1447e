//! What the wheel promises.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn entries_come_out_in_order_and_not_before_their_time() {
    let mut wheel = TimerWheel::new();
    for time in [i64::MAX, 0, 1_700_000_000_000, 15, 16, -1, i64::MIN, 1_700_000_000_001] {
        wheel.insert(time, 7);
    }
    assert_eq!(wheel.next_time(), Some(i64::MIN));
    let mut times = |now| std::iter::from_fn(|| wheel.pop_due(now).map(|e| e.time)).collect::<Vec<_>>();
    assert_eq!(times(14), [i64::MIN, -1, 0]);
    assert_eq!(times(15), [15]);
    assert_eq!(times(1_700_000_000_000), [16, 1_700_000_000_000]);
    assert_eq!(times(i64::MAX), [1_700_000_000_001, i64::MAX]);
    assert_eq!(wheel.len(), 0);
}

#[test]
fn what_is_far_away_comes_near_with_time() {
    const DAY: i64 = 24 * 3600 * 1000;
    let mut wheel = TimerWheel::new();
    [400, 1, 399, 2000].iter().for_each(|&day| wheel.insert(day * DAY, 1));
    assert_eq!((wheel.pop_due(0), wheel.next_time()), (None, Some(DAY)));
    wheel.insert(398 * DAY, 2);
    let mut times = |now| std::iter::from_fn(|| wheel.pop_due(now).map(|e| e.time / DAY)).collect::<Vec<_>>();
    assert_eq!(times(398 * DAY), [1, 398]);
    assert_eq!(times(1999 * DAY), [399, 400]);
    assert_eq!(times(2000 * DAY), [2000]);
}

#[test]
fn buckets_take_what_their_entries_do() {
    let mut wheel = TimerWheel::new();
    assert_eq!(wheel.pop_due(1_700_000_000_000), None);
    for round in 0..20i64 {
        let start = 1_700_000_000_000 + round * 40_000;
        (0..10_000).for_each(|i| wheel.insert(start + 40_000 + i64::from(i), i));
        let chunks: usize = wheel.buckets.iter().map(Bucket::chunks).sum();
        assert!(chunks < 10_000 / 256 + 2 * BUCKETS, "{chunks} chunks");
        let out: Vec<u32> = std::iter::from_fn(|| wheel.pop_due(start + 50_000)).map(|e| e.slot).collect();
        assert!(out.is_sorted() && out.len() == 10_000);
    }
    assert_eq!(wheel.buckets.iter().map(Bucket::chunks).sum::<usize>(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(i64, u32),
    PopUntil(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![-50i64..5_000, 0i64..90_000_000, 0i64..100_000_000_000, any::<i64>()];
    prop_oneof![
        4 => (time.clone(), 0u32..10).prop_map(|(time, slot)| Step::Insert(time, slot)),
        1 => time.prop_map(Step::PopUntil),
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_sorted_set(steps in prop::collection::vec(step(), 1..200)) {
        let mut wheel = TimerWheel::new();
        let mut model = BTreeSet::new();
        for step in steps {
            match step {
                Step::Insert(time, slot) => if model.insert((time, slot)) {
                    wheel.insert(time, slot);
                },
                Step::PopUntil(now) => {
                    while let Some(entry) = wheel.pop_due(now) {
                        prop_assert_eq!(model.pop_first(), Some((entry.time, entry.slot)));
                    }
                    prop_assert!(model.first().is_none_or(|&(time, _)| time > now));
                }
            }
            prop_assert_eq!(wheel.len(), model.len());
            prop_assert_eq!(wheel.next_time(), model.first().map(|&(time, _)| time));
        }
    }
}
