//! Snapshots: what was there is there again in another backend.

use std::collections::BTreeSet;

use millstream_types::{
    Clock, MaxParallelism, StateForm,
    StateKind::{List, Map, Value},
    StatePart,
};

use super::{Subject, cells, columns, show_cells};
use crate::StateError;

pub(super) fn run(fresh: impl Fn() -> Subject) {
    everything_is_there_again(fresh(), fresh());
    halves_have_the_keys_of_their_groups(&fresh);
    other_states_are_refused(fresh(), fresh());
}

fn max() -> MaxParallelism {
    MaxParallelism::new(8).expect("in range")
}

fn snapshot(s: &mut Subject) -> Vec<StatePart> {
    s.keyed.snapshot(max()).expect("between calls")
}

fn fill(s: &mut Subject) {
    s.call(&["a", "b", "c", "d"], |s| {
        let (value, list, map) = (s.id(Value, "value"), s.id(List, "list"), s.id(Map, "map"));
        let values = cells(&[Some((1, Some("one"))), Some((2, None)), None]);
        s.keyed.write_values(value, &[0, 1, 2], values).expect("fits");
        let runs = millstream_types::Runs {
            offsets: vec![0, 2, 3],
            items: columns(&[(5, None), (6, Some("six")), (7, None)]),
        };
        s.keyed.append_lists(list, &[0, 2], runs).expect("fits");
        let entries = cells(&[Some((8, None)), Some((9, Some("nine")))]);
        s.keyed.write_entries(map, &[1, 1], &[0, 1, 3], b"xyy", entries).expect("fits");
        s.keyed.set_timers(Clock::Event, &[0, 0, 3], &[30, 10, 20]).expect("fits");
        s.keyed.set_timers(Clock::Processing, &[3], &[40]).expect("fits");
    });
}

/// Everything that keys have, as text.
fn show_all(s: &mut Subject, names: &[&str]) -> Vec<String> {
    let all: Vec<u32> = (0..names.len() as u32).collect();
    s.call(names, |s| {
        let (value, list, map) = (s.id(Value, "value"), s.id(List, "list"), s.id(Map, "map"));
        let mut text = show_cells(&s.keyed.read_values(value, &all).expect("known"));
        let lists = s.keyed.read_lists(list, &all).expect("known");
        text.push(format!("{:?}", lists.offsets));
        let items = (0..lists.items.rows).map(|row| super::show(&lists.items, row));
        text.extend(items);
        let entries = s.keyed.scan_entries(map, &all, None, 100).expect("known");
        text.push(format!("{:?} {:?}", entries.offsets, String::from_utf8_lossy(&entries.key_bytes)));
        text.extend((0..entries.values.rows).map(|row| super::show(&entries.values, row)));
        text
    })
}

fn everything_is_there_again(mut s: Subject, mut restored: Subject) {
    fill(&mut s);
    let parts = snapshot(&mut s);
    for part in &parts {
        restored.keyed.restore(part).expect("its own state");
    }
    assert_eq!(snapshot(&mut restored), parts, "the same bytes");
    let names = ["a", "b", "c", "d"];
    let expected = show_all(&mut s, &names);
    assert!(expected.iter().any(|line| line == "9 nine"), "{expected:?}");
    assert_eq!(show_all(&mut restored, &names), expected);
    assert_eq!(restored.keyed.pending_timers(Clock::Processing), 1);
    for time in [9, 10, 25, 30] {
        assert_eq!(restored.round(time), s.round(time));
    }
    let key_counts = [&s, &restored].map(|s| s.keyed.key_count());
    assert_eq!(key_counts[0], key_counts[1]);
}

fn halves_have_the_keys_of_their_groups(fresh: &impl Fn() -> Subject) {
    let mut s = fresh();
    let names: Vec<String> = (0..100).map(|i| format!("key {i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    s.call(&names, |s| {
        let (value, all) = (s.id(Value, "value"), (0..100).collect::<Vec<u32>>());
        let rows: Vec<_> = (0..100).map(|i| Some((i, None))).collect();
        s.keyed.write_values(value, &all, cells(&rows)).expect("fits");
    });
    let parts = snapshot(&mut s);
    let groups: BTreeSet<_> = parts.iter().flat_map(|p| &p.chunks).map(|c| c.key_group).collect();
    assert_eq!(groups.len(), 8, "every group has some of a hundred keys");
    let mut halves = [fresh(), fresh()];
    for part in &parts {
        for (i, half) in halves.iter_mut().enumerate() {
            let mut mine = part.clone();
            mine.chunks.retain(|c| c.key_group.is_some_and(|g| usize::from(g.0) / 4 == i));
            half.keyed.restore(&mine).expect("its own state");
        }
    }
    let counts = halves.map(|half| half.keyed.key_count());
    assert!(counts.iter().all(|&count| count > 0) && counts.iter().sum::<usize>() == 100, "{counts:?}");
}

fn other_states_are_refused(mut s: Subject, mut restored: Subject) {
    fill(&mut s);
    let parts = snapshot(&mut s);
    let value = parts.iter().find(|p| p.form == StateForm::Value).expect("it has one");
    let mut gone = value.clone();
    gone.name = "gone".to_owned();
    let error = restored.keyed.restore(&gone).expect_err("not declared");
    assert_eq!(error, StateError::NotDeclared { name: "gone".to_owned() });
    let mut other = value.clone();
    other.columns.pop();
    let error = restored.keyed.restore(&other).expect_err("other columns").to_string();
    assert!(error.contains("(n int64) in the snapshot, (n int64, text utf8?) are declared"), "{error}");
    let mut cut = value.clone();
    cut.chunks[0].bytes.pop();
    assert!(restored.keyed.restore(&cut).is_err());
}
