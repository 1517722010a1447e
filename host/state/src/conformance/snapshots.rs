//! Snapshots: what was there is there again in another backend.

use std::collections::BTreeSet;

use millstream_types::{
    ChunkKind, Clock, MaxParallelism, SnapshotRequest, StateForm,
    StateKind::{List, Map, Value},
    StatePart,
};

use super::{Subject, cells, columns, show_cells};
use crate::StateError;

pub(super) fn run(fresh: impl Fn() -> Subject) {
    everything_is_there_again(fresh(), fresh());
    halves_have_the_keys_of_their_groups(&fresh);
    other_states_are_refused(fresh(), fresh());
    changes_fit_on_what_they_build_on(&fresh);
    images_are_dealt_out_by_key_group(&fresh);
    an_unknown_base_is_no_base(&fresh);
}

fn max() -> MaxParallelism {
    MaxParallelism::new(8).expect("in range")
}

/// Everything as chunks.
fn snapshot(s: &mut Subject) -> Vec<StatePart> {
    let parts = s.keyed.snapshot(max(), &SnapshotRequest::in_full(1)).expect("between calls");
    super::portable(parts, max(), s.open)
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

/// Key groups out of images: two of one, and then one of two.
fn images_are_dealt_out_by_key_group(fresh: &impl Fn() -> Subject) {
    let mut s = fresh();
    fill_much(&mut s);
    change(&mut s, "a", 10);
    let parts = building(&mut s, 1, None);
    let Some(files) = parts.iter().find_map(|part| part.files.clone()) else { return };
    let halves = [0..3, 3..8].map(|groups| {
        let mut half = fresh();
        let part = StatePart { files: Some(files.of_groups(groups)), ..parts[0].clone() };
        half.keyed.restore(&part).expect("its own state");
        half
    });
    let mut whole = fresh();
    for mut half in halves {
        let parts = building(&mut half, 2, None);
        parts.iter().for_each(|part| whole.keyed.restore(part).expect("its own state"));
    }
    assert_same(&mut whole, &mut s);
    for time in [0, 50, 200] {
        assert_eq!(whole.round(time), s.round(time));
    }
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

/// Snapshots that may build on an earlier one, of which one is given up.
fn changes_fit_on_what_they_build_on(fresh: &impl Fn() -> Subject) {
    let mut s = fresh();
    fill_much(&mut s);
    let first = building(&mut s, 1, None);
    change(&mut s, "a", 10);
    let given_up = building(&mut s, 2, Some(1));
    assert!(!given_up.is_empty());
    change(&mut s, "b", 20);
    let third = upon(&first, building(&mut s, 3, Some(1)));
    let mut restored = restore(fresh(), &third, Some(3));
    assert_same(&mut s, &mut restored);
    // What has been restored is as good to build on as what was there all the time.
    change(&mut s, "c", 30);
    change(&mut restored, "c", 30);
    let of_restored = upon(&third, building(&mut restored, 4, Some(3)));
    let of_first = upon(&third, building(&mut s, 4, Some(3)));
    assert_same(&mut restore(fresh(), &of_restored, None), &mut s);
    assert_same(&mut restore(fresh(), &of_first, None), &mut s);
}

/// A base that the backend has not taken, or may not build on, is as good as none.
fn an_unknown_base_is_no_base(fresh: &impl Fn() -> Subject) {
    let mut s = fresh();
    fill_much(&mut s);
    let parts = building(&mut s, 8, Some(7));
    assert!(parts.iter().all(|part| part.base.is_none()), "everything is in it");
    let mut restored = restore(fresh(), &parts, None);
    change(&mut restored, "a", 10);
    let parts = building(&mut restored, 9, Some(8));
    assert!(parts.iter().all(|part| part.base.is_none()), "everything is in it");
    assert_same(&mut restore(fresh(), &parts, None), &mut restored);
}

/// So much state that what has changed is less than everything.
fn fill_much(s: &mut Subject) {
    let names: Vec<String> = (0..3000).map(|i| format!("key {i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    s.call(&names, |s| {
        let (value, all) = (s.id(Value, "value"), (0..3000).collect::<Vec<u32>>());
        let text = Some("a text that is long enough for the state not to be a small one");
        let rows: Vec<_> = (0..3000).map(|i| Some((i, text))).collect();
        s.keyed.write_values(value, &all, cells(&rows)).expect("fits");
    });
    fill(s);
}

/// Changes of every kind: `name` gets something everywhere and others lose what they have.
fn change(s: &mut Subject, name: &str, number: i64) {
    let (goes, comes_again) = (format!("key {number}"), format!("key {}", number + 1));
    for key in [&goes, &comes_again] {
        s.call(&[key], |s| {
            let value = s.id(Value, "value");
            s.keyed.write_values(value, &[0], cells(&[None])).expect("fits");
        });
    }
    s.call(&[name, &comes_again, "b", "a"], |s| {
        let (value, list, map) = (s.id(Value, "value"), s.id(List, "list"), s.id(Map, "map"));
        let values = cells(&[Some((number, None)), Some((number, Some("again")))]);
        s.keyed.write_values(value, &[0, 1], values).expect("fits");
        s.keyed.clear_lists(list, &[2]).expect("fits");
        let runs = millstream_types::Runs { offsets: vec![0, 1], items: columns(&[(number, None)]) };
        s.keyed.append_lists(list, &[0], runs).expect("fits");
        let entries = cells(&[Some((number, None)), None]);
        s.keyed.write_entries(map, &[0, 0], &[0, 1, 3], b"zyy", entries).expect("fits");
        s.keyed.set_timers(Clock::Event, &[0], &[number + 100]).expect("fits");
    });
    s.round(number);
}

/// A snapshot on which others may build.
fn building(s: &mut Subject, checkpoint: u64, base: Option<u64>) -> Vec<StatePart> {
    let request = SnapshotRequest { checkpoint, base, base_of_later: true };
    s.keyed.snapshot(max(), &request).expect("between calls")
}

/// All that there is once changes are put behind what they build on.
fn upon(base: &[StatePart], parts: Vec<StatePart>) -> Vec<StatePart> {
    let all = |part: StatePart| {
        let before = base.iter().find(|b| (&b.name, b.form) == (&part.name, part.form));
        let before = before.filter(|_| part.base.is_some()).map(|b| b.chunks.clone()).unwrap_or_default();
        let is_whole = |group| part.chunks.iter().any(|c| c.key_group == group && c.kind == ChunkKind::Whole);
        let mut chunks: Vec<_> = before.into_iter().filter(|c| !is_whole(c.key_group)).collect();
        chunks.extend(part.chunks.clone());
        chunks.sort_by_key(|chunk| chunk.key_group);
        StatePart { base: None, chunks, ..part }
    };
    parts.into_iter().map(all).collect()
}

fn restore(mut fresh: Subject, parts: &[StatePart], base: Option<u64>) -> Subject {
    for part in parts {
        fresh.keyed.restore(&StatePart { base, ..part.clone() }).expect("its own state");
    }
    fresh
}

fn assert_same(one: &mut Subject, other: &mut Subject) {
    assert_eq!(one.keyed.key_count(), other.keyed.key_count());
    for clock in [Clock::Event, Clock::Processing] {
        assert_eq!(one.keyed.pending_timers(clock), other.keyed.pending_timers(clock));
    }
    let names = ["a", "b", "c", "d", "key 0", "key 10", "key 11", "key 20", "key 21", "key 31", "key 99"];
    assert_eq!(show_all(one, &names), show_all(other, &names));
}
