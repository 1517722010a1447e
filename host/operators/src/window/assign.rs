//! Which rows of a batch fall into which panes.

use arrow_array::UInt32Array;
use hashbrown::HashMap;
use millstream_types::{Batch, Window};

use super::layout::Layout;
use crate::time_range::bounds;

/// Rows that share a step or a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The step or pane.
    pub(super) window: Window,
    /// The rows; `None` for all rows of the batch.
    pub(super) rows: Option<Vec<u32>>,
}

/// Groups the rows by step. Rows in gaps between windows are in no part.
///
/// Most batches lie in one step, which their lowest and highest time show without looking at the others; rows of a
/// step mostly follow one another, so that no row needs a lookup.
pub(super) fn steps(times: &[i64], layout: &Layout) -> Vec<Part> {
    let (low, high) = bounds(times);
    let first = layout.step_of(low);
    if let Some(window) = first.filter(|_| first == layout.step_of(high)) {
        return vec![Part { window, rows: None }];
    }
    let mut parts: Vec<(Window, Vec<u32>)> = Vec::new();
    let mut part_at = PartIndex::default();
    let mut current = 0;
    for (row, &time) in times.iter().enumerate() {
        if !parts.get(current).is_some_and(|(w, _)| w.start <= time && time < w.end) {
            let Some(step) = layout.step_of(time) else { continue };
            current = part_at.find(step, &parts).unwrap_or_else(|| {
                part_at.insert(step, parts.len());
                parts.push((step, Vec::new()));
                parts.len() - 1
            });
        }
        parts[current].1.push(row as u32);
    }
    parts.into_iter().map(|(window, rows)| Part { window, rows: Some(rows) }).collect()
}

/// Finds the part of a step: by looking at all of them while they are few, by hash when they are not.
#[derive(Default)]
struct PartIndex {
    by_start: HashMap<i64, usize>,
}

impl PartIndex {
    fn find(&self, step: Window, parts: &[(Window, Vec<u32>)]) -> Option<usize> {
        if parts.len() <= FEW {
            return parts.iter().position(|(window, _)| *window == step);
        }
        self.by_start.get(&step.start).copied()
    }

    fn insert(&mut self, step: Window, part: usize) {
        self.by_start.insert(step.start, part);
    }
}

/// Up to so many parts a look at each is faster than a hash.
const FEW: usize = 8;

/// The panes of the steps' rows in one pass. Steps of the same pane become one part.
pub(super) fn panes(steps: &[Part], layout: &Layout, pass: usize) -> Vec<Part> {
    let mut panes: Vec<Part> = Vec::with_capacity(steps.len());
    let mut at: HashMap<Window, usize> = HashMap::new();
    for step in steps {
        let Some(window) = layout.pane(step.window, pass) else { continue };
        match (at.get(&window), &step.rows) {
            (Some(&pane), Some(more)) => panes[pane].rows.get_or_insert_default().extend(more),
            _ => {
                at.insert(window, panes.len());
                panes.push(Part { window, rows: step.rows.clone() });
            }
        }
    }
    panes
}

/// A batch with only the rows of the parts that `keep` says yes to, and the rows that are left out, ascending. All
/// rows stay where they are if every row is in a part that is kept.
pub(super) fn restrict(
    batch: Batch,
    parts: Vec<Part>,
    keep: impl Fn(Window) -> bool,
) -> (Batch, Vec<Part>, Vec<u32>) {
    let (kept, dropped): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| keep(part.window));
    let all = |part: &Part| part.rows.is_none();
    let count = |parts: &[Part]| parts.iter().flat_map(|p| &p.rows).map(Vec::len).sum::<usize>();
    if kept.iter().any(all) || (dropped.is_empty() && count(&kept) == batch.rows()) {
        return (batch, kept, Vec::new());
    }
    if dropped.iter().any(all) {
        let rows = (0..batch.rows() as u32).collect();
        return (batch.slice(0, 0), kept, rows);
    }
    let sorted = |parts: &[Part]| {
        let mut rows: Vec<u32> = parts.iter().flat_map(|p| &p.rows).flatten().copied().collect();
        rows.sort_unstable();
        rows
    };
    let rows = sorted(&kept);
    let mut moved = vec![0; batch.rows()];
    rows.iter().enumerate().for_each(|(to, &from)| moved[from as usize] = to as u32);
    let renumber = |part: Part| {
        let rows = part.rows.map(|rows| rows.into_iter().map(|row| moved[row as usize]).collect());
        Part { rows, ..part }
    };
    let dropped = sorted(&dropped);
    let batch = batch.take(&UInt32Array::from(rows));
    (batch, kept.into_iter().map(renumber).collect(), dropped)
}

/// The parts of some of the batch's rows, which are numbered by their position in `rows`. Every row is in one part.
pub(super) fn select(parts: &[Part], batch_rows: usize, rows: &[u32]) -> Vec<Part> {
    let mut part_of_row = vec![0; batch_rows];
    for (i, part) in parts.iter().enumerate() {
        part.rows.iter().flatten().for_each(|&row| part_of_row[row as usize] = i);
    }
    let mut selected = vec![Vec::new(); parts.len()];
    rows.iter().enumerate().for_each(|(at, &row)| selected[part_of_row[row as usize]].push(at as u32));
    let parts = parts.iter().zip(selected).filter(|(_, rows)| !rows.is_empty());
    parts.map(|(part, rows)| Part { window: part.window, rows: Some(rows) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{rows, show, text_batch};

    const TUMBLING: Layout = Layout::Whole { size: 10, slide: 10, offset: 0, passes: 1 };

    fn part(start: i64, end: i64, rows: &[u32]) -> Part {
        Part { window: Window::new(start, end), rows: Some(rows.to_vec()) }
    }

    #[test]
    fn a_batch_in_one_step_is_not_looked_through() {
        assert_eq!(steps(&[3, 9, 0], &TUMBLING), [Part { window: Window::new(0, 10), rows: None }]);
    }

    #[test]
    fn rows_are_grouped_in_order_of_first_appearance() {
        let parts = steps(&[13, 9, 12, 25, 0], &TUMBLING);
        assert_eq!(parts, [part(10, 20, &[0, 2]), part(0, 10, &[1, 4]), part(20, 30, &[3])]);
        let many: Vec<i64> = (0..300).map(|i| (i * 7 % 30) * 10).collect();
        let parts = steps(&many, &TUMBLING);
        assert_eq!(parts.len(), 30);
        for part in parts {
            let rows = part.rows.expect("several parts");
            assert_eq!(rows.len(), 10);
            assert!(rows.iter().all(|&r| many[r as usize] == part.window.start));
        }
    }

    #[test]
    fn rows_between_windows_are_in_no_part() {
        let gaps = Layout::Whole { size: 3, slide: 10, offset: 0, passes: 1 };
        assert_eq!(steps(&[1, 4, 12], &gaps), [part(0, 3, &[0]), part(10, 13, &[2])]);
    }

    #[test]
    fn steps_of_one_pane_become_one_part() {
        let layout = Layout::Whole { size: 10, slide: 4, offset: 0, passes: 3 };
        let steps = steps(&[5, 7, 4], &layout);
        assert_eq!(panes(&steps, &layout, 0), [part(0, 10, &[0, 2, 1])]);
        assert_eq!(panes(&steps, &layout, 1), [part(4, 14, &[0, 2, 1])]);
        assert_eq!(panes(&steps, &layout, 2), [part(-4, 6, &[0, 2])]);
    }

    #[test]
    fn rows_that_stay_are_numbered_anew() {
        let batch = text_batch(&["n:int64", "@13 0", "@9 1", "@12 2", "@25 3", "@0 4"]);
        let parts = steps(batch.times(), &TUMBLING);
        let (kept, parts, dropped) = restrict(batch, parts, |w| w.start != 0);
        assert_eq!(show(&kept), rows(&["@13 0", "@12 2", "@25 3"]));
        assert_eq!(parts, [part(10, 20, &[0, 1]), part(20, 30, &[2])]);
        assert_eq!(dropped, [1, 4]);
    }
}
