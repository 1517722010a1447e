//! Map state.

use millstream_types::StateKind::Map;

use super::{Row, Subject, cells, show, show_cells};

pub(super) fn run(fresh: impl Fn() -> Subject) {
    pairs_are_written_read_and_removed(fresh());
    scans_go_in_order_of_map_keys(fresh());
    a_call_sees_its_writes(fresh());
    what_is_rolled_back_was_never_there(fresh());
    a_map_without_entries_is_gone(fresh());
    damaged_map_keys_are_refused(fresh());
}

/// Map keys, one behind the other.
fn joined(map_keys: &[&str]) -> (Vec<u32>, Vec<u8>) {
    let mut offsets = vec![0];
    map_keys.iter().for_each(|k| offsets.push(offsets.last().copied().unwrap_or(0) + k.len() as u32));
    (offsets, map_keys.concat().into_bytes())
}

impl Subject {
    fn put(&mut self, pairs: &[(u32, &str, Option<Row>)]) {
        let id = self.id(Map, "map");
        let keys: Vec<u32> = pairs.iter().map(|p| p.0).collect();
        let (offsets, bytes) = joined(&pairs.iter().map(|p| p.1).collect::<Vec<_>>());
        let rows: Vec<Option<Row>> = pairs.iter().map(|p| p.2).collect();
        self.keyed.write_entries(id, &keys, &offsets, &bytes, cells(&rows)).expect("a write");
    }

    fn entries(&mut self, pairs: &[(u32, &str)]) -> Vec<String> {
        let id = self.id(Map, "map");
        let keys: Vec<u32> = pairs.iter().map(|p| p.0).collect();
        let (offsets, bytes) = joined(&pairs.iter().map(|p| p.1).collect::<Vec<_>>());
        show_cells(&self.keyed.read_entries(id, &keys, &offsets, &bytes).expect("a read"))
    }

    fn scan(&mut self, keys: &[u32], start: Option<&str>, limit: u32) -> Vec<String> {
        let id = self.id(Map, "map");
        let found = self.keyed.scan_entries(id, keys, start.map(str::as_bytes), limit).expect("a scan");
        let entry = |i: usize| {
            let map_key = &found.key_bytes[found.key_offsets[i] as usize..found.key_offsets[i + 1] as usize];
            format!("{}={}", String::from_utf8_lossy(map_key), show(&found.values, i))
        };
        let run = |w: &[u32]| (w[0]..w[1]).map(|i| entry(i as usize)).collect::<Vec<_>>().join(", ");
        found.offsets.windows(2).map(run).collect()
    }
}

fn pairs_are_written_read_and_removed(mut s: Subject) {
    s.begin(&["a", "b"]);
    assert_eq!(s.entries(&[(0, "x")]), ["absent"]);
    s.put(&[(0, "x", Some((1, Some("one")))), (1, "x", Some((2, None))), (0, "", Some((3, None)))]);
    s.commit();
    let read = s.call(&["b", "a"], |s| s.entries(&[(0, "x"), (1, "x"), (1, ""), (1, "y"), (0, "")]));
    assert_eq!(read, ["2 -", "1 one", "3 -", "absent", "absent"]);
    s.call(&["a"], |s| s.put(&[(0, "x", None), (0, "never there", None)]));
    assert_eq!(s.call(&["a"], |s| s.entries(&[(0, "x"), (0, "")])), ["absent", "3 -"]);
}

fn scans_go_in_order_of_map_keys(mut s: Subject) {
    let pairs = ["m", "b", "z", "", "ba"].map(|k| (0, k, Some((k.len() as i64, None))));
    s.call(&["a", "other"], |s| s.put(&pairs));
    s.begin(&["a", "other"]);
    assert_eq!(s.scan(&[1, 0], None, 10), ["", "=0 -, b=1 -, ba=2 -, m=1 -, z=1 -"]);
    assert_eq!(s.scan(&[0], Some("b"), 3), ["b=1 -, ba=2 -, m=1 -"]);
    assert_eq!(s.scan(&[0, 0], Some("c"), 1), ["m=1 -", "m=1 -"]);
    assert_eq!(s.scan(&[0], Some("zz"), 1), [""]);
    assert_eq!(s.scan(&[0], None, 0), [""]);
    s.commit();
}

fn a_call_sees_its_writes(mut s: Subject) {
    s.call(&["a"], |s| s.put(&["b", "d", "f"].map(|k| (0, k, Some((1, None))))));
    s.begin(&["a"]);
    s.put(&[(0, "d", None), (0, "c", Some((2, None))), (0, "f", Some((3, None))), (0, "g", Some((4, None)))]);
    assert_eq!(s.entries(&[(0, "b"), (0, "c"), (0, "d"), (0, "f")]), ["1 -", "2 -", "absent", "3 -"]);
    assert_eq!(s.scan(&[0], None, 10), ["b=1 -, c=2 -, f=3 -, g=4 -"]);
    assert_eq!(s.scan(&[0], Some("d"), 1), ["f=3 -"]);
    let id = s.id(Map, "map");
    s.keyed.clear_maps(id, &[0]).expect("a clear");
    assert_eq!(s.scan(&[0], None, 10), [""]);
    s.put(&[(0, "b", Some((7, None)))]);
    assert_eq!(
        (s.entries(&[(0, "b"), (0, "f")]), s.scan(&[0], None, 10)),
        (vec!["7 -".into(), "absent".into()], vec!["b=7 -".into()])
    );
    s.commit();
    assert_eq!(s.call(&["a"], |s| s.scan(&[0], None, 10)), ["b=7 -"]);
}

fn what_is_rolled_back_was_never_there(mut s: Subject) {
    s.call(&["a"], |s| s.put(&[(0, "x", Some((1, None)))]));
    s.begin(&["a", "b"]);
    let id = s.id(Map, "map");
    s.keyed.clear_maps(id, &[0]).expect("a clear");
    s.put(&[(0, "y", Some((2, None))), (1, "z", Some((3, None)))]);
    s.keyed.rollback();
    assert_eq!(s.call(&["a", "b"], |s| s.scan(&[0, 1], None, 10)), ["x=1 -", ""]);
    assert_eq!(s.keyed.key_count(), 1);
}

fn a_map_without_entries_is_gone(mut s: Subject) {
    s.call(&["a", "b"], |s| {
        s.put(&[(0, "x", Some((1, None))), (1, "x", Some((1, None))), (1, "y", Some((2, None)))])
    });
    s.call(&["a", "b"], |s| s.put(&[(0, "x", None), (1, "x", None)]));
    assert_eq!(s.keyed.key_count(), 1);
    let id = s.id(Map, "map");
    s.call(&["b"], |s| s.keyed.clear_maps(id, &[0]).expect("a clear"));
    assert_eq!(s.keyed.key_count(), 0);
}

fn damaged_map_keys_are_refused(mut s: Subject) {
    let id = s.id(Map, "map");
    s.begin(&["a", "b"]);
    for offsets in [vec![], vec![0, 1], vec![0, 3, 2], vec![0, 1, 9]] {
        let read = s.keyed.read_entries(id, &[0, 1], &offsets, b"xy").expect_err("damaged").to_string();
        assert!(
            read.contains("offsets of map keys") && read.contains("3 ascending positions from 0 to 2"),
            "{read}"
        );
        let written = s.keyed.write_entries(id, &[0, 1], &offsets, b"xy", cells(&[None, None]));
        assert_eq!(written.expect_err("damaged").to_string(), read);
    }
}
