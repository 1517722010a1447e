//! Keys that nothing has touched for a while lose what they have.

use millstream_types::{
    Clock, MaxParallelism, Runs, SnapshotRequest,
    StateKind::{List, Map, Value},
};

use super::{Subject, cells, columns, portable, show_cells};

pub(super) fn run(fresh: impl Fn() -> Subject) {
    what_is_not_touched_goes(fresh());
    a_key_without_state_has_nothing_to_expire(fresh());
    timers_stay(fresh());
    what_is_rolled_back_is_not_touched(fresh());
    expiries_are_restored(fresh(), fresh());
}

const TTL: i64 = 1600;

impl Subject {
    /// A call that touches these keys at a time, and writes if it is told to.
    fn touch(&mut self, now: i64, names: &[&str], write: bool) {
        self.keyed.set_ttl(Some(TTL));
        self.begin(names);
        self.keyed.touch(now);
        if write {
            let keys: Vec<u32> = (0..names.len() as u32).collect();
            let (value, list, map) = (self.id(Value, "value"), self.id(List, "list"), self.id(Map, "map"));
            let rows = vec![Some((7, None)); names.len()];
            self.keyed.write_values(value, &keys, cells(&rows)).expect("fits");
            let offsets: Vec<u32> = (0..=names.len() as u32).collect();
            let items = columns(&vec![(7, None); names.len()]);
            self.keyed.append_lists(list, &keys, Runs { offsets: offsets.clone(), items }).expect("fits");
            let map_keys = vec![b'x'; names.len()];
            self.keyed.write_entries(map, &keys, &offsets, &map_keys, cells(&rows)).expect("fits");
        }
        self.commit();
    }

    fn expire(&mut self, now: i64) -> usize {
        self.keyed.expire(now).expect("between calls")
    }

    /// Which of these keys have something, be it of one state only.
    fn having<'a>(&mut self, names: &[&'a str]) -> Vec<&'a str> {
        let all: Vec<u32> = (0..names.len() as u32).collect();
        self.call(names, |s| {
            let (value, list, map) = (s.id(Value, "value"), s.id(List, "list"), s.id(Map, "map"));
            let values = show_cells(&s.keyed.read_values(value, &all).expect("known"));
            let lists = s.keyed.read_lists(list, &all).expect("known").offsets;
            let maps = s.keyed.scan_entries(map, &all, None, 100).expect("known").offsets;
            let has =
                |at: usize| values[at] != "absent" || lists[at] < lists[at + 1] || maps[at] < maps[at + 1];
            names.iter().enumerate().filter(|&(at, _)| has(at)).map(|(_, &name)| name).collect()
        })
    }
}

fn what_is_not_touched_goes(mut s: Subject) {
    s.touch(0, &["a", "b", "c"], true);
    s.touch(1000, &["b"], false);
    // So small a step does not put it off.
    s.touch(50, &["c"], true);
    assert_eq!(s.expire(1599), 0, "it stays for that long");
    assert_eq!(s.having(&["a", "b", "c"]), ["a", "b", "c"]);
    assert_eq!(s.expire(1700), 2);
    assert_eq!(s.having(&["a", "b", "c"]), ["b"]);
    assert_eq!((s.keyed.key_count(), s.keyed.pending_timers(Clock::Expiry)), (1, 1));
    assert_eq!(s.expire(2700), 1);
    assert_eq!((s.keyed.key_count(), s.keyed.next_timer(Clock::Expiry)), (0, None));
}

fn a_key_without_state_has_nothing_to_expire(mut s: Subject) {
    s.touch(0, &["a"], false);
    assert_eq!((s.keyed.key_count(), s.keyed.pending_timers(Clock::Expiry)), (0, 0));
}

fn timers_stay(mut s: Subject) {
    s.touch(0, &["a"], true);
    s.call(&["a"], |s| s.keyed.set_timers(Clock::Event, &[0], &[5]).expect("fits"));
    assert_eq!(s.expire(5000), 1);
    assert_eq!(s.having(&["a"]), Vec::<&str>::new());
    assert_eq!(s.round(5), ["a 5"]);
    assert_eq!(s.keyed.key_count(), 0);
}

fn what_is_rolled_back_is_not_touched(mut s: Subject) {
    s.touch(0, &["a"], true);
    s.begin(&["a"]);
    s.keyed.touch(1500);
    s.keyed.rollback();
    assert_eq!(s.expire(1700), 1);
}

fn expiries_are_restored(mut s: Subject, mut restored: Subject) {
    s.touch(0, &["a", "b"], true);
    s.touch(1000, &["b"], false);
    let max = MaxParallelism::new(8).expect("in range");
    let parts = s.keyed.snapshot(max, &SnapshotRequest::in_full(1)).expect("between calls");
    for part in portable(parts, max, s.open) {
        restored.keyed.restore(&part).expect("its own state");
    }
    assert_eq!(restored.expire(1700), 1);
    assert_eq!(restored.having(&["a", "b"]), ["b"]);
}
