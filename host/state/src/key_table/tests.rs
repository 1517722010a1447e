//! What a table of keys promises.

use std::collections::HashMap;

use millstream_types::hash_key;
use proptest::prelude::*;

use super::*;

fn encoded<K: AsRef<[u8]>>(keys: &[K]) -> EncodedKeys {
    let mut all = EncodedKeys::new();
    keys.iter().for_each(|k| all.push(k.as_ref(), hash_key(k.as_ref())));
    all
}

fn resolve(table: &mut KeyTable, keys: &EncodedKeys) -> Grouping {
    let mut grouping = Grouping::default();
    grouping.start(keys.len());
    table.resolve(keys, &mut grouping);
    grouping
}

#[test]
fn rows_of_a_key_are_one_group_in_order_of_first_appearance() {
    let mut table = KeyTable::new();
    let first = resolve(&mut table, &encoded(&["b", "a", "b", "c"]));
    assert_eq!(first.group_of_row, [0, 1, 0, 2]);
    assert_eq!(first.first_row_of_group, [0, 1, 3]);
    assert_eq!(first.created, [0, 1, 2]);
    let second = resolve(&mut table, &encoded(&["c", "d", "b"]));
    assert_eq!(second.slot_of_group, [2, 3, 0]);
    assert_eq!(second.created, [1]);
}

#[test]
fn groups_of_several_tables_follow_one_another() {
    let keys = encoded(&["a", "b", "a", "b"]);
    let (mut one, mut two) = (KeyTable::new(), KeyTable::new());
    let mut grouping = Grouping::default();
    grouping.start(keys.len());
    one.resolve_rows(&keys, &[0, 1], &mut grouping);
    two.resolve_rows(&keys, &[3], &mut grouping);
    assert_eq!(grouping.group_of_row, [0, 1, Grouping::NONE, 2]);
    assert_eq!(grouping.slot_of_group, [0, 1, 0]);
    assert_eq!(grouping.first_row_of_group, [0, 1, 3]);
}

#[test]
fn keys_of_every_length_are_told_apart_and_read_back() {
    let lengths = (0..64).chain([1000, 65_536]);
    let keys: Vec<Vec<u8>> = lengths.flat_map(|n| [vec![0; n], vec![7; n]]).skip(1).collect();
    let mut table = KeyTable::new();
    let grouping = resolve(&mut table, &encoded(&keys));
    assert_eq!(table.len(), keys.len());
    for (key, &slot) in keys.iter().zip(&grouping.slot_of_group) {
        assert_eq!(table.key(slot), key);
    }
}

#[test]
fn keys_with_the_same_tag_do_not_meet() {
    let mut table = KeyTable::new();
    let mut keys = EncodedKeys::new();
    (0..1000u32).for_each(|i| keys.push(&i.to_be_bytes(), u64::from(i % 3)));
    let grouping = resolve(&mut table, &keys);
    assert_eq!(grouping.groups(), 1000);
    let again = resolve(&mut table, &keys);
    assert_eq!(again.slot_of_group, grouping.slot_of_group);
    assert!(again.created.is_empty());
}

#[test]
fn keys_of_another_table_find_their_slots() {
    let (mut from, mut into) = (KeyTable::new(), KeyTable::new());
    resolve(&mut from, &encoded(&["a", "b", "c and longer than in place"]));
    resolve(&mut into, &encoded(&["b", "d"]));
    let mut grouping = Grouping::default();
    grouping.start(2);
    into.resolve_slots(&from, &[2, 1], &mut grouping);
    assert_eq!((&grouping.slot_of_group[..], &grouping.created[..]), (&[2, 0][..], &[0][..]));
    assert_eq!(grouping.known().collect::<Vec<_>>(), [1]);
    assert_eq!(into.key(2), b"c and longer than in place");
    let mut copy = KeyTable::new();
    copy.copy_from(&into);
    assert_eq!(resolve(&mut copy, &encoded(&["d", "b"])).slot_of_group, [1, 0]);
}

#[test]
fn a_table_that_was_cleared_is_empty_and_as_large_as_before() {
    let mut table = KeyTable::new();
    let keys: Vec<String> = (0..100).map(|i| format!("a key that is a long one {i}")).collect();
    resolve(&mut table, &encoded(&keys));
    let capacity = table.capacity();
    table.clear();
    assert_eq!((table.len(), table.occupied().count(), table.capacity()), (0, 0, capacity));
    assert_eq!(resolve(&mut table, &encoded(&keys)).created.len(), 100);
    assert_eq!(table.key(99), keys[99].as_bytes());
}

#[test]
fn the_mark_of_a_call_survives_its_overflow() {
    let mut table = KeyTable::new();
    let keys = encoded(&["a", "b"]);
    resolve(&mut table, &keys);
    table.call = u32::MAX;
    let after = resolve(&mut table, &keys);
    assert_eq!(after.group_of_row, [0, 1]);
}

#[test]
fn removed_keys_leave_no_memory_behind() {
    let mut table = KeyTable::new();
    for round in 0..200u32 {
        let keys: Vec<String> = (0..100).map(|i| format!("a key that is a long one {round} {i}")).collect();
        let grouping = resolve(&mut table, &encoded(&keys));
        let slots = [grouping.slot_of_group.clone(), vec![grouping.slot_of_group[0]]].concat();
        table.remove_where(&slots, |slot| slot % 2 == 0);
        table.remove_where(&slots, |_| true);
    }
    assert!(table.is_empty());
    assert_eq!((table.slots(), table.long_keys.places(), table.capacity()), (100, 100, 128));
}

proptest! {
    #[test]
    fn behaves_like_a_map(calls in prop::collection::vec(
        (prop::collection::vec(0u16..300, 0..80), prop::collection::vec(0u16..300, 0..40)), 1..20,
    )) {
        // Few hash values, so that probes run into each other and around the end of the directory.
        let hash = |key: u16| u64::from(key % 7).wrapping_mul(0x2555_5555_5555_5555);
        let bytes = |key: u16| vec![key as u8; usize::from(key % 24) + 2 + usize::from(key >> 8)];
        let mut table = KeyTable::new();
        let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
        for (touched, removed) in calls {
            let mut keys = EncodedKeys::new();
            touched.iter().for_each(|&k| keys.push(&bytes(k), hash(k)));
            let grouping = resolve(&mut table, &keys);
            for (row, &key) in touched.iter().enumerate() {
                let slot = grouping.slot_of_group[grouping.group_of_row[row] as usize];
                prop_assert_eq!(*model.entry(bytes(key)).or_insert(slot), slot);
                prop_assert_eq!(table.key(slot), &bytes(key)[..]);
            }
            for key in removed {
                let found = table.find(&bytes(key), hash(key));
                prop_assert_eq!(found, model.remove(&bytes(key)));
                found.into_iter().for_each(|slot| table.remove(slot));
            }
            prop_assert_eq!(table.len(), model.len());
            prop_assert_eq!(table.occupied().count(), model.len());
        }
    }
}
