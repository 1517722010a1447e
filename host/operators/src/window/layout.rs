//! The windows that all keys share, and how they lie in state.
//!
//! A *pane* is what state keeps apart: a whole window, or a slice that overlapping windows have in common. A *step* is
//! a stretch of time all of whose rows fall into the same panes: windows start and end nowhere within it. Where windows
//! start every `slide`, one also ends every `slide`, so that each stretch of that length has at most two steps,
//! whatever divisors size and slide have in common.

use millstream_types::Window;

use super::running::Running;

/// Windows of all keys and their panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Each window is a pane of its own. A row falls into `passes` of them.
    Whole { size: i64, slide: i64, offset: i64, passes: usize },
    /// Windows are made of slices, a step each, so that a row is added once, whatever number of windows it falls into.
    Sliced { size: i64, slide: i64, offset: i64 },
    /// One window.
    Global,
}

impl Layout {
    pub(super) fn tumbling(size: i64, offset: i64) -> Self {
        Self::Whole { size, slide: size, offset, passes: 1 }
    }

    /// Windows that start every `slide`. Slices are made if they may be and if windows overlap.
    pub(super) fn sliding(size: i64, slide: i64, offset: i64, slices: bool) -> Self {
        if slices && slide < size {
            return Self::Sliced { size, slide, offset };
        }
        let passes = (size / slide + i64::from(size % slide != 0)) as usize;
        Self::Whole { size, slide, offset, passes }
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
        let (Self::Whole { size, slide, offset, .. } | Self::Sliced { size, slide, offset }) = *self else {
            return Some(Window::GLOBAL);
        };
        let start = floor(time, slide, offset);
        // Where a window ends, or else the next one starts; behind a window that is shorter than its slide is a gap.
        let cut = start + if size == slide { size } else { size % slide };
        if time < cut {
            return Some(Window::new(start, cut));
        }
        (slide < size).then(|| Window::new(cut, start + slide))
    }

    /// The pane of a step's rows in a pass, if they fall into one. All rows that fall into a window do so in the same
    /// pass, so that they come in order.
    pub(super) fn pane(&self, step: Window, pass: usize) -> Option<Window> {
        match *self {
            Self::Whole { size, slide, offset, passes } => {
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
            Self::Sliced { size, slide, offset } => {
                let start = floor(pane.start, slide, offset);
                Window::new(start, start + size)
            }
            Self::Whole { .. } | Self::Global => pane,
        }
    }

    /// The first window that a pane is part of and whose last time is after `after`.
    pub(super) fn next_window(&self, pane: Window, after: i64) -> Option<Window> {
        match *self {
            Self::Sliced { size, slide, offset } => {
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

    /// How long slices may be, where windows are made of slices.
    pub(super) fn longest_slice(&self) -> Option<i64> {
        match *self {
            Self::Sliced { slide, .. } => Some(slide),
            Self::Whole { .. } | Self::Global => None,
        }
    }

    /// Whether rows come into a pane, or it is one of merged slices, which are as long as a window or longer.
    pub(super) fn is_filled(&self, pane: Window) -> bool {
        self.longest_slice().is_none_or(|longest| pane.end.saturating_sub(pane.start) <= longest)
    }

    /// How the slices of windows that share many are merged; where they share few, they are merged for each window.
    pub(super) fn running(&self) -> Option<Running> {
        match *self {
            Self::Sliced { size, slide, offset } => {
                let in_slide = 1 + i64::from(size % slide != 0);
                (size / slide * in_slide > FEW_SLICES).then(|| Running::new(slide, offset))
            }
            Self::Whole { .. } | Self::Global => None,
        }
    }
}

/// Up to so many slices, merging them for each window costs no more than keeping merged ones.
const FEW_SLICES: i64 = 6;

/// The greatest `offset + k * every` that is not after `time`.
#[inline]
pub(super) fn floor(time: i64, every: i64, offset: i64) -> i64 {
    time.saturating_sub(time.saturating_sub(offset).rem_euclid(every))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICED: Layout = Layout::Sliced { size: 11, slide: 4, offset: 1 };
    const WHOLE: Layout = Layout::Whole { size: 11, slide: 4, offset: 1, passes: 3 };
    const GAPS: Layout = Layout::Whole { size: 3, slide: 10, offset: 0, passes: 1 };

    /// The windows that a time falls into by their definition, the one that ends first first.
    fn windows_of(time: i64, size: i64, slide: i64, offset: i64) -> Vec<Window> {
        let starts = (time - size + 1..=time).filter(|start| (start - offset).rem_euclid(slide) == 0);
        starts.map(|start| Window::new(start, start + size)).collect()
    }

    #[test]
    fn the_passes_of_a_row_are_its_windows() {
        for time in -50..50 {
            for (layout, size, slide, offset) in [(WHOLE, 11, 4, 1), (GAPS, 3, 10, 0)] {
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
            for window in windows_of(time, 11, 4, 1) {
                assert_eq!(passes_of(window), 1);
            }
        }
    }

    #[test]
    fn the_windows_of_a_slice_are_those_of_its_rows() {
        for time in -50..50 {
            let slice = SLICED.step_of(time).expect("no gaps");
            let expected = windows_of(time, 11, 4, 1);
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
        assert_eq!(SLICED.next_window(Window::new(1, 4), i64::MAX), None);
    }

    #[test]
    fn slices_are_two_a_slide_whatever_the_sizes() {
        let day = 86_400_000;
        for (size, slide) in [(day + 1, 2000), (day, 2000), (11, 4), (8, 4), (7, 5)] {
            let layout = Layout::sliding(size, slide, 3, true);
            let (mut slices, mut time) = (0, 3);
            while time < 3 + 10 * slide {
                let slice = layout.step_of(time).expect("no gaps");
                assert_eq!(slice.start, time, "one begins where the last one ends");
                assert!(layout.is_filled(slice) && !layout.is_filled(Window::new(time, time + size)));
                (slices, time) = (slices + 1, slice.end);
            }
            assert_eq!(slices, if size % slide == 0 { 10 } else { 20 });
        }
    }
}
