//! Merging the slices of sliding windows, each slice about four times whatever the number of windows that share it.
//!
//! A window is cut at a *pivot*. What lies before it is a suffix: the slices from the window's start to the pivot,
//! merged. What lies behind it is the prefix: the slices from the pivot to the window's end. When the window slides,
//! the prefix takes up the new slices, and the next, shorter suffix is there already. When no suffix is left, the
//! pivot moves to the window's end, and the suffixes of the window starts before it are made, the shortest first, each
//! from the one before. (This is the queue made of two stacks, with tables of accumulators for elements.)
//!
//! A suffix is made for a window start only if slices lie between it and the next one, and if there were too many, for
//! every so manieth of these. A window without a suffix of its own takes the next shorter one and the slices before
//! that.
//!
//! All that pays where keys have rows in many slices. Where a slice has few of a window's keys, the suffixes would be
//! much larger than the slices and as slow, and slices are merged for each window. A window that is merged so shows
//! which it is, and there is one before each move of the pivot.
//!
//! Suffixes and prefix are panes behind all slices, at the end of time. They are copies: whenever a row
//! comes into a slice that they hold, they are dropped and made again from the slices when needed; so are they at a
//! barrier, and no snapshot has them.

use std::collections::BTreeSet;

use millstream_operator::OperatorError;
use millstream_types::Window;

use super::{layout::floor, panes::Panes};

/// Merged slices that following windows will use.
#[derive(Debug)]
pub(super) struct Running {
    slide: i64,
    offset: i64,
    /// Where windows are cut, once there has been one.
    pivot: Option<i64>,
    /// The window starts whose suffixes there are.
    suffixes: BTreeSet<i64>,
    /// From this window start on all suffixes have been made that are.
    made_from: i64,
    /// Of so many window starts that could have a suffix one has.
    stride: usize,
    /// Where the slices that the prefix holds end.
    prefix_end: i64,
    /// The stride that the last window that was merged from its slices calls for; none if suffixes would not pay.
    learned: Option<usize>,
}

impl Running {
    /// For windows that start every `slide` from `offset` on.
    pub(super) fn new(slide: i64, offset: i64) -> Self {
        Self {
            slide,
            offset,
            pivot: None,
            suffixes: BTreeSet::new(),
            made_from: i64::MIN,
            stride: 1,
            prefix_end: i64::MIN,
            learned: None,
        }
    }

    /// A pane with the accumulators of a window, which is its caller's; none if its slices are better merged. Windows
    /// are asked for in order.
    pub(super) async fn window(
        &mut self,
        window: Window,
        panes: &mut Panes,
    ) -> Result<Option<Window>, OperatorError> {
        let pivot = match (self.pivot, self.learned.take()) {
            (Some(pivot), _) if window.start < pivot && pivot <= window.end => pivot,
            (_, Some(stride)) => self.turn(window.end, stride, panes)?,
            (_, None) => {
                self.reset(panes)?;
                return Ok(None);
            }
        };
        self.drop_suffixes(window.start, panes)?;
        self.make_suffixes(window.start, pivot, panes).await?;
        self.extend_prefix(pivot, window.end, panes).await?;
        let made = self.suffix_of(window, pivot, panes).await?;
        panes.merge(made, prefix(pivot)).await?;
        Ok(Some(made))
    }

    /// Learns from a window that has been merged from its slices.
    pub(super) fn observe(&mut self, window: Window, slices: &[Window], panes: &Panes) {
        let in_slices: usize = slices.iter().map(|&slice| panes.state().keys_of(slice)).sum();
        let keys = panes.state().keys_of(window);
        let room = SUFFIX_GROUPS.max(in_slices.saturating_mul(SUFFIX_SHARE));
        let stride = slices.len().saturating_mul(keys).div_ceil(room).max(1);
        self.learned = (in_slices > DENSE * keys).then_some(stride);
    }

    /// Forgets what holds a slice that a row comes into.
    pub(super) fn touch(&mut self, slice: Window, panes: &mut Panes) -> Result<(), OperatorError> {
        let Some(pivot) = self.pivot else { return Ok(()) };
        if slice.end <= pivot {
            let next = self.start_of(slice).saturating_add(self.slide);
            self.made_from = self.made_from.max(next);
            self.drop_suffixes(next, panes)
        } else if slice.end <= self.prefix_end {
            self.prefix_end = pivot;
            Ok(panes.state_mut().clear(prefix(pivot))?)
        } else {
            Ok(())
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, panes: &mut Panes) -> Result<(), OperatorError> {
        self.drop_suffixes(i64::MAX, panes)?;
        if let Some(pivot) = self.pivot.take() {
            panes.state_mut().clear(prefix(pivot))?;
        }
        Ok(())
    }

    /// Moves the pivot.
    fn turn(&mut self, pivot: i64, stride: usize, panes: &mut Panes) -> Result<i64, OperatorError> {
        self.reset(panes)?;
        (self.made_from, self.prefix_end, self.stride) = (pivot, pivot, stride);
        self.pivot = Some(pivot);
        Ok(pivot)
    }

    /// Makes the suffixes from a window start on that have not been made.
    async fn make_suffixes(&mut self, from: i64, pivot: i64, panes: &mut Panes) -> Result<(), OperatorError> {
        if from >= self.made_from {
            return Ok(());
        }
        // Between two suffixes are slices that the longer one has.
        let to = self.suffixes.range(self.made_from..).next().copied().unwrap_or(pivot);
        let slices = panes.slices(Window::new(from, to), self.slide);
        let (mut of_suffix, mut starts) = (Vec::new(), 0);
        for (at, &slice) in slices.iter().enumerate().rev() {
            of_suffix.push(slice);
            let start = self.start_of(slice);
            if at > 0 && self.start_of(slices[at - 1]) == start {
                continue;
            }
            starts += 1;
            if starts % self.stride == 0 {
                self.make_suffix(start, &of_suffix, panes).await?;
                of_suffix.clear();
            }
        }
        self.made_from = from;
        Ok(())
    }

    /// Makes a suffix of the next shorter one and the slices before that.
    async fn make_suffix(
        &mut self,
        start: i64,
        slices: &[Window],
        panes: &mut Panes,
    ) -> Result<(), OperatorError> {
        for &slice in slices {
            panes.merge(suffix(start), slice).await?;
        }
        if let Some(&shorter) = self.suffixes.range(start..).next() {
            panes.merge(suffix(start), suffix(shorter)).await?;
        }
        self.suffixes.insert(start);
        Ok(())
    }

    /// Adds the slices up to a window's end to the prefix.
    async fn extend_prefix(&mut self, pivot: i64, end: i64, panes: &mut Panes) -> Result<(), OperatorError> {
        for slice in panes.slices(Window::new(self.prefix_end.max(pivot), end), self.slide) {
            panes.merge(prefix(pivot), slice).await?;
        }
        self.prefix_end = end;
        Ok(())
    }

    /// A pane with what lies before the pivot of a window, which is its caller's: the suffix itself if no other window
    /// needs it, else a copy.
    async fn suffix_of(
        &mut self,
        window: Window,
        pivot: i64,
        panes: &mut Panes,
    ) -> Result<Window, OperatorError> {
        if self.suffixes.remove(&window.start) {
            return Ok(suffix(window.start));
        }
        let shorter = self.suffixes.range(window.start..).next().copied();
        for slice in panes.slices(Window::new(window.start, shorter.unwrap_or(pivot)), self.slide) {
            panes.merge(window, slice).await?;
        }
        if let Some(shorter) = shorter {
            panes.merge(window, suffix(shorter)).await?;
        }
        Ok(window)
    }

    /// The start of the last window that a slice is part of.
    fn start_of(&self, slice: Window) -> i64 {
        floor(slice.start, self.slide, self.offset)
    }

    /// Drops the suffixes that start before `from`.
    fn drop_suffixes(&mut self, from: i64, panes: &mut Panes) -> Result<(), OperatorError> {
        while let Some(start) = self.suffixes.range(..from).next().copied() {
            self.suffixes.remove(&start);
            panes.state_mut().clear(suffix(start))?;
        }
        Ok(())
    }
}

/// In how many slices a key of a window has rows on average for suffixes to pay.
const DENSE: usize = 6;

/// Suffixes may have so many groups in all, and more where slices have many: so many times theirs. The windows of tests
/// have few slices, so that they would never have fewer suffixes than they could.
const SUFFIX_GROUPS: usize = if cfg!(test) { 1 } else { 1 << 18 };
const SUFFIX_SHARE: usize = if cfg!(test) { 1 } else { 4 };

/// The pane of a suffix.
fn suffix(start: i64) -> Window {
    Window::new(start, i64::MAX - 1)
}

/// The pane of the prefix.
fn prefix(pivot: i64) -> Window {
    Window::new(pivot, i64::MAX)
}
