//! List state.

use millstream_types::{Runs, StateKind::List};

use super::{Row, Subject, columns, show};

pub(super) fn run(fresh: impl Fn() -> Subject) {
    runs_are_appended_in_order(fresh());
    a_call_sees_what_it_appends_and_clears(fresh());
    what_is_rolled_back_was_never_there(fresh());
    a_cleared_list_is_gone(fresh());
    damaged_runs_are_refused(fresh());
}

fn runs(lists: &[&[Row]]) -> Runs {
    let mut offsets = vec![0];
    let rows: Vec<Row> = lists.concat();
    lists.iter().for_each(|list| offsets.push(offsets.last().copied().unwrap_or(0) + list.len() as u32));
    Runs { offsets, items: columns(&rows) }
}

impl Subject {
    fn append(&mut self, keys: &[u32], lists: &[&[Row]]) {
        let id = self.id(List, "list");
        self.keyed.append_lists(id, keys, runs(lists)).expect("an append");
    }

    fn clear_lists(&mut self, keys: &[u32]) {
        let id = self.id(List, "list");
        self.keyed.clear_lists(id, keys).expect("a clear");
    }

    fn lists(&mut self, keys: &[u32]) -> Vec<String> {
        let id = self.id(List, "list");
        let read = self.keyed.read_lists(id, keys).expect("a read");
        assert_eq!(read.offsets.last().map(|&end| end as usize), Some(read.items.rows));
        let run = |w: &[u32]| {
            (w[0]..w[1]).map(|row| show(&read.items, row as usize)).collect::<Vec<_>>().join(", ")
        };
        read.offsets.windows(2).map(run).collect()
    }
}

fn runs_are_appended_in_order(mut s: Subject) {
    s.begin(&["a", "b", "c"]);
    assert_eq!(s.lists(&[0, 1]), ["", ""]);
    s.append(
        &[0, 2, 0],
        &[&[(1, Some("x")), (2, None)], &[], &[(3, Some("a text of more than sixteen bytes"))]],
    );
    s.commit();
    s.call(&["b", "a"], |s| s.append(&[1, 0], &[&[(4, None)], &[(9, Some(""))]]));
    let read = s.call(&["a", "b", "c"], |s| s.lists(&[2, 0, 1, 0]));
    let a = "1 x, 2 -, 3 a text of more than sixteen bytes, 4 -";
    assert_eq!(read, ["", a, "9 ", a]);
    assert_eq!(s.keyed.key_count(), 2, "an empty list is none");
}

fn a_call_sees_what_it_appends_and_clears(mut s: Subject) {
    s.call(&["a", "b"], |s| s.append(&[0, 1], &[&[(1, None)], &[(2, None)]]));
    s.begin(&["b", "a"]);
    s.append(&[0, 1], &[&[(3, None)], &[(4, None)]]);
    assert_eq!(s.lists(&[0, 1]), ["2 -, 3 -", "1 -, 4 -"]);
    s.clear_lists(&[1]);
    assert_eq!(s.lists(&[0, 1]), ["2 -, 3 -", ""]);
    s.append(&[1], &[&[(5, Some("e")), (6, None)]]);
    assert_eq!(s.lists(&[1, 0]), ["5 e, 6 -", "2 -, 3 -"]);
    s.commit();
    assert_eq!(s.call(&["a", "b"], |s| s.lists(&[0, 1])), ["5 e, 6 -", "2 -, 3 -"]);
}

fn what_is_rolled_back_was_never_there(mut s: Subject) {
    s.call(&["a"], |s| s.append(&[0], &[&[(1, None)]]));
    s.begin(&["a", "b"]);
    s.clear_lists(&[0]);
    s.append(&[0, 1], &[&[(2, None)], &[(3, None)]]);
    s.keyed.rollback();
    assert_eq!(s.call(&["a", "b"], |s| s.lists(&[0, 1])), ["1 -", ""]);
    assert_eq!(s.keyed.key_count(), 1);
}

fn a_cleared_list_is_gone(mut s: Subject) {
    s.call(&["a"], |s| s.append(&[0], &[&[(1, None)]]));
    s.call(&["a"], |s| s.clear_lists(&[0]));
    assert_eq!(s.keyed.key_count(), 0);
    assert_eq!(s.call(&["a"], |s| s.lists(&[0])), [""]);
}

fn damaged_runs_are_refused(mut s: Subject) {
    let id = s.id(List, "list");
    s.begin(&["a", "b"]);
    for offsets in [vec![], vec![0, 1], vec![0, 2, 1], vec![1, 1, 1], vec![0, 1, 2]] {
        let runs = Runs { offsets, items: columns(&[(1, None)]) };
        let refused = s.keyed.append_lists(id, &[0, 1], runs).expect_err("damaged").to_string();
        assert!(refused.contains("3 ascending positions from 0 to 1 expected"), "{refused}");
    }
    s.commit();
    assert_eq!(s.keyed.key_count(), 0);
}
