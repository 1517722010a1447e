//! Timers.

use millstream_types::{Clock, StateKind::Value};

use super::{Subject, cells};
use crate::StateError;

pub(super) fn run(fresh: impl Fn() -> Subject) {
    due_timers_come_in_rounds(fresh());
    a_timer_set_by_a_round_comes_with_the_next(fresh());
    set_twice_fires_once_and_cleared_not_at_all(fresh());
    clocks_do_not_mix(fresh());
    what_is_rolled_back_was_never_there(fresh());
    a_round_rolled_back_is_due_again(fresh());
    rounds_are_bounded(fresh());
    state_is_at_hand_in_a_round(fresh());
    dropped_timers_are_counted(fresh());
    positions_are_checked(fresh());
}

impl Subject {
    fn set(&mut self, clock: Clock, keys: &[u32], times: &[i64]) {
        self.keyed.set_timers(clock, keys, times).expect("a timer");
    }

    /// Starts a round and shows its timers, `key time`.
    fn begin_round(&mut self, clock: Clock, now: i64, limit: usize) -> Vec<String> {
        let count = self.keyed.begin_timers(clock, now, limit).expect("a round");
        assert_eq!((count, count), (self.keyed.keys(), self.keyed.fired_times().len()));
        let keys = self.keyed.call_keys().into_iter().map(String::from_utf8_lossy);
        keys.zip(self.keyed.fired_times()).map(|(key, time)| format!("{key} {time}")).collect()
    }

    pub(super) fn round(&mut self, now: i64) -> Vec<String> {
        let fired = self.begin_round(Clock::Event, now, 100);
        if !fired.is_empty() {
            self.commit();
        }
        fired
    }
}

fn due_timers_come_in_rounds(mut s: Subject) {
    s.call(&["a", "b", "c"], |s| s.set(Clock::Event, &[1, 0, 1, 2, 1], &[30, 20, 10, i64::MAX, i64::MIN]));
    assert_eq!((s.keyed.pending_timers(Clock::Event), s.keyed.next_timer(Clock::Event)), (5, Some(i64::MIN)));
    assert_eq!(s.round(i64::MIN), ["b -9223372036854775808"]);
    assert_eq!(s.round(9), Vec::<String>::new());
    assert_eq!(s.round(30), ["b 10", "a 20"]);
    assert_eq!(s.round(30), ["b 30"]);
    assert_eq!(s.round(30), Vec::<String>::new());
    assert_eq!(s.keyed.key_count(), 1);
    assert_eq!(s.round(i64::MAX), ["c 9223372036854775807"]);
    assert_eq!((s.keyed.key_count(), s.keyed.next_timer(Clock::Event)), (0, None));
}

fn a_timer_set_by_a_round_comes_with_the_next(mut s: Subject) {
    s.call(&["a", "b"], |s| s.set(Clock::Event, &[0, 1], &[10, 20]));
    assert_eq!(s.begin_round(Clock::Event, 20, 100), ["a 10", "b 20"]);
    s.set(Clock::Event, &[0, 1, 0], &[10, 15, 99]);
    s.commit();
    assert_eq!(s.round(20), ["a 10", "b 15"]);
    assert_eq!(s.round(20), Vec::<String>::new());
    s.call(&["b"], |s| s.set(Clock::Event, &[0], &[-5]));
    assert_eq!(s.round(20), ["b -5"], "behind the clock");
    assert_eq!(s.round(99), ["a 99"]);
}

fn set_twice_fires_once_and_cleared_not_at_all(mut s: Subject) {
    s.call(&["a", "b"], |s| s.set(Clock::Event, &[0, 1, 0], &[10, 10, 10]));
    s.call(&["a", "b"], |s| {
        s.set(Clock::Event, &[0, 1], &[10, 12]);
        s.keyed.clear_timers(Clock::Event, &[1, 1, 0], &[10, 99, 11]).expect("a clear");
    });
    assert_eq!(s.keyed.pending_timers(Clock::Event), 2);
    assert_eq!(s.round(10), ["a 10"]);
    s.call(&["b"], |s| {
        s.keyed.clear_timers(Clock::Event, &[0], &[12]).expect("a clear");
        s.set(Clock::Event, &[0], &[13]);
        s.keyed.clear_timers(Clock::Event, &[0], &[13]).expect("a clear");
    });
    assert_eq!((s.round(i64::MAX), s.keyed.key_count()), (Vec::new(), 0));
}

fn clocks_do_not_mix(mut s: Subject) {
    s.call(&["a"], |s| {
        s.set(Clock::Event, &[0], &[10]);
        s.set(Clock::Processing, &[0], &[20]);
    });
    assert_eq!(s.keyed.next_timer(Clock::Processing), Some(20));
    assert_eq!(s.round(100), ["a 10"]);
    assert_eq!(s.begin_round(Clock::Processing, 100, 1), ["a 20"]);
    s.commit();
    assert_eq!(s.keyed.key_count(), 0);
}

fn what_is_rolled_back_was_never_there(mut s: Subject) {
    s.call(&["a"], |s| s.set(Clock::Event, &[0], &[10]));
    s.begin(&["a", "b"]);
    s.set(Clock::Event, &[0, 1], &[5, 5]);
    s.keyed.clear_timers(Clock::Event, &[0], &[10]).expect("a clear");
    s.keyed.rollback();
    assert_eq!((s.keyed.key_count(), s.round(100)), (1, vec!["a 10".to_owned()]));
}

fn a_round_rolled_back_is_due_again(mut s: Subject) {
    s.call(&["a", "b"], |s| s.set(Clock::Event, &[0, 0, 1], &[10, 20, 15]));
    assert_eq!(s.begin_round(Clock::Event, 30, 100), ["a 10", "b 15"]);
    s.set(Clock::Event, &[0], &[1]);
    s.keyed.rollback();
    assert_eq!(s.keyed.pending_timers(Clock::Event), 3);
    assert_eq!(
        (s.round(30), s.round(30)),
        (vec!["a 10".to_owned(), "b 15".to_owned()], vec!["a 20".to_owned()])
    );
}

fn rounds_are_bounded(mut s: Subject) {
    let names: Vec<String> = (0..10).map(|i| format!("key {i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let times: Vec<i64> = (0..10).map(|i| 100 - i).collect();
    s.call(&names, |s| s.set(Clock::Event, &(0..10).collect::<Vec<_>>(), &times));
    let mut all = Vec::new();
    loop {
        let fired = s.begin_round(Clock::Event, 100, 3);
        assert!(fired.len() <= 3);
        if fired.is_empty() {
            break;
        }
        s.commit();
        all.extend(fired);
    }
    let expected: Vec<String> = (91..=100).map(|time| format!("key {} {time}", 100 - time)).collect();
    assert_eq!(all, expected);
}

fn state_is_at_hand_in_a_round(mut s: Subject) {
    let id = s.id(Value, "value");
    s.call(&["a", "b"], |s| {
        s.keyed.write_values(id, &[0, 1], cells(&[Some((1, None)), Some((2, None))])).expect("a write");
        s.set(Clock::Event, &[0, 1], &[20, 10]);
    });
    assert_eq!(s.begin_round(Clock::Event, 20, 100), ["b 10", "a 20"]);
    let read = s.keyed.read_values(id, &[0, 1]).expect("a read");
    assert_eq!(super::show_cells(&read), ["2 -", "1 -"]);
    s.keyed.write_values(id, &[0], cells(&[None])).expect("a write");
    s.commit();
    assert_eq!(s.keyed.key_count(), 1, "b has neither a value nor a timer");
}

fn dropped_timers_are_counted(mut s: Subject) {
    s.call(&["a", "b"], |s| {
        s.set(Clock::Processing, &[0, 0, 1], &[10, 20, 30]);
        s.set(Clock::Event, &[1], &[5]);
    });
    assert_eq!(s.keyed.drop_timers(Clock::Processing), Ok(3));
    assert_eq!((s.keyed.pending_timers(Clock::Processing), s.keyed.next_timer(Clock::Processing)), (0, None));
    assert_eq!((s.keyed.drop_timers(Clock::Processing), s.keyed.key_count()), (Ok(0), 1));
    s.call(&["a"], |s| s.set(Clock::Processing, &[0], &[10]));
    assert_eq!(s.begin_round(Clock::Processing, 50, 10), ["a 10"]);
}

fn positions_are_checked(mut s: Subject) {
    s.begin(&["a"]);
    let refused = s.keyed.set_timers(Clock::Event, &[0, 1], &[1, 2]).expect_err("no such key");
    assert_eq!(refused, StateError::NoSuchKey { position: 1, keys: 1 });
    let refused = s.keyed.clear_timers(Clock::Event, &[0], &[]).expect_err("no time").to_string();
    assert_eq!(refused, "state `timers`: 1 keys with 0 times");
}
