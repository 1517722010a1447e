//! The windows that all keys share, and how they lie in state.
//!
//! A *pane* is what state keeps apart: a whole window, or a slice that overlapping windows have in common. A *step* is
//! a stretch of time all of whose rows fall into the same panes.

use millstream_types::Window;

use super::running::Running;

/// Windows of all keys and their panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Each window is a pane of its own. A row falls into `passes` of them.
    Whole { size: i64, slide: i64, offset: i64, step: i64, passes: usize },
    /// Windows are made of slices as long as the greatest common divisor of their size and slide, so that a row is
    /// added once, whatever number of windows it falls into.
    Sliced { size: i64, slide: i64, offset: i64, slice: i64 },
    /// One window.
    Global,
}

impl Layout {
    pub(super) fn tumbling(size: i64, offset: i64) -> Self {
        Self::Whole { size, slide: size, offset, step: size, passes: 1 }
    }

    /// Windows that start every `slide`. Slices are made if they may be and if windows overlap.
    pub(super) fn sliding(size: i64, slide: i64, offset: i64, slices: bool) -> Self {
        let step = if slide < size { greatest_common_divisor(size, slide) } else { slide };
        if slices && slide < size {
            return Self::Sliced { size, slide, offset, slice: step };
        }
        let passes = (size / slide + i64::from(size % slide != 0)) as usize;
        Self::Whole { size, slide, offset, step, passes }
    }

    /// How many panes a row falls into at most.
    pub(super) fn passes(&self) -> usize {
        match *self {
            Self::Whole { passes, .. } => passes,
            Self::Sliced { .. } | Self::Global => 1,
        }
    }

    /// The step that a time falls into; none in a gap between windows.
    #[inline]
    pub(super) fn step_of(&self, time: i64) -> Option<Window> {
        let (every, length, offset) = match *self {
            Self::Whole { size, slide, step, offset, .. } => {
                (step, if slide > size { size } else { step }, offset)
            }
            Self::Sliced { slice, offset, .. } => (slice, slice, offset),
            Self::Global => return Some(Window::GLOBAL),
        };
        let start = floor(time, every, offset);
        (time - start < length).then(|| Window::new(start, start + length))
    }

    /// The pane of a step's rows in a pass, if they fall into one. All rows that fall into a window do so in the same
    /// pass, so that they come in order.
    pub(super) fn pane(&self, step: Window, pass: usize) -> Option<Window> {
        match *self {
            Self::Whole { size, slide, offset, passes, .. } => {
                let last = floor(step.start, slide, offset);
                let index = (last - offset) / slide;
                let start = last - slide * (index - pass as i64).rem_euclid(passes as i64);
                (step.end <= start + size).then(|| Window::new(start, start + size))
            }
            Self::Sliced { .. } | Self::Global => Some(step),
        }
    }

    /// The pane of a step's rows that is kept longest.
    pub(super) fn last_pane(&self, step: Window) -> Window {
        match *self {
            Self::Whole { size, slide, offset, .. } => {
                let start = floor(step.start, slide, offset);
                Window::new(start, start + size)
            }
            Self::Sliced { .. } | Self::Global => step,
        }
    }

    /// The last window that a pane is part of: once it is over for good, so is the pane.
    pub(super) fn last_window(&self, pane: Window) -> Window {
        match *self {
            Self::Sliced { size, slide, offset, .. } => {
                let start = floor(pane.start, slide, offset);
                Window::new(start, start + size)
            }
            Self::Whole { .. } | Self::Global => pane,
        }
    }

    /// The first window that a pane is part of and whose last time is after `after`.
    pub(super) fn next_window(&self, pane: Window, after: i64) -> Option<Window> {
        match *self {
            Self::Sliced { size, slide, offset, .. } => {
                let earliest = pane.end.max(after.saturating_add(2)).saturating_sub(size);
                let start = floor(earliest.saturating_add(slide - 1), slide, offset);
                (start <= pane.start).then(|| Window::new(start, start + size))
            }
            Self::Whole { .. } | Self::Global => Some(pane).filter(|p| p.max_time() > after),
        }
    }

    /// A lower bound, in the order of window ends, of the panes of windows whose last time is after `after`.
    pub(super) fn first_pane_after(&self, after: i64) -> Window {
        let end = after.saturating_add(2);
        match *self {
            Self::Sliced { size, .. } => Window::new(i64::MIN, end.saturating_sub(size)),
            Self::Whole { .. } | Self::Global => Window::new(i64::MIN, end),
        }
    }

    /// How long slices are, where windows are made of slices.
    pub(super) fn slice(&self) -> Option<i64> {
        match *self {
            Self::Sliced { slice, .. } => Some(slice),
            Self::Whole { .. } | Self::Global => None,
        }
    }

    /// Whether rows come into a pane, or it is one of merged slices.
    pub(super) fn is_filled(&self, pane: Window) -> bool {
        self.slice().is_none_or(|slice| pane.end.saturating_sub(pane.start) == slice)
    }

    /// How the slices of windows that share many are merged; where they share few, they are merged for each window.
    pub(super) fn running(&self) -> Option<Running> {
        match *self {
            Self::Sliced { size, slide, slice, .. } if size / slice > FEW_SLICES => {
                Some(Running::new(slide, slice))
            }
            _ => None,
        }
    }
}

/// Up to so many slices, merging them for each window costs no more than keeping merged ones.
const FEW_SLICES: i64 = 6;

/// The greatest `offset + k * every` that is not after `time`.
#[inline]
fn floor(time: i64, every: i64, offset: i64) -> i64 {
    time.saturating_sub(time.saturating_sub(offset).rem_euclid(every))
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICED: Layout = Layout::Sliced { size: 10, slide: 4, offset: 1, slice: 2 };
    const WHOLE: Layout = Layout::Whole { size: 10, slide: 4, offset: 1, step: 2, passes: 3 };
    const GAPS: Layout = Layout::Whole { size: 3, slide: 10, offset: 0, step: 10, passes: 1 };

    /// The windows that a time falls into by their definition, the one that ends first first.
    fn windows_of(time: i64, size: i64, slide: i64, offset: i64) -> Vec<Window> {
        let starts = (time - size + 1..=time).filter(|start| (start - offset).rem_euclid(slide) == 0);
        starts.map(|start| Window::new(start, start + size)).collect()
    }

    #[test]
    fn the_passes_of_a_row_are_its_windows() {
        for time in -50..50 {
            for (layout, size, slide, offset) in [(WHOLE, 10, 4, 1), (GAPS, 3, 10, 0)] {
                let panes = |step| (0..layout.passes()).filter_map(move |pass| layout.pane(step, pass));
                let mut found: Vec<_> = layout.step_of(time).into_iter().flat_map(panes).collect();
                found.sort_unstable();
                assert_eq!(found, windows_of(time, size, slide, offset), "time {time}");
                assert_eq!(found.last().copied(), layout.step_of(time).map(|step| layout.last_pane(step)));
            }
        }
    }

    #[test]
    fn a_window_is_filled_in_one_pass() {
        let passes_of = |window: Window| {
            let steps = (window.start..window.end).filter_map(|time| WHOLE.step_of(time));
            let fills = |pass| steps.clone().any(|step| WHOLE.pane(step, pass) == Some(window));
            (0..WHOLE.passes()).filter(|&pass| fills(pass)).count()
        };
        for time in -20..20 {
            for window in windows_of(time, 10, 4, 1) {
                assert_eq!(passes_of(window), 1);
            }
        }
    }

    #[test]
    fn the_windows_of_a_slice_are_those_of_its_rows() {
        for time in -50..50 {
            let slice = SLICED.step_of(time).expect("no gaps");
            let expected = windows_of(time, 10, 4, 1);
            let mut found = Vec::new();
            let mut after = i64::MIN;
            while let Some(window) = SLICED.next_window(slice, after) {
                found.push(window);
                after = window.max_time();
            }
            assert_eq!(found, expected, "time {time}");
            assert_eq!(Some(&SLICED.last_window(slice)), expected.last());
            assert!(expected.iter().all(|w| SLICED.first_pane_after(w.max_time() - 1).end <= slice.end));
        }
        assert_eq!(SLICED.next_window(Window::new(1, 3), i64::MAX), None);
    }
}
