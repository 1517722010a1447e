//! Merging the slices of sliding windows, each slice about four times whatever the number of windows that share it.
//!
//! A window is cut at a *pivot*. What lies before it is a suffix: the slices from the window's start to the pivot,
//! merged. What lies behind it is the prefix: the slices from the pivot to the window's end. When the window slides,
//! the prefix takes up the new slices, and the next, shorter suffix is there already. When no suffix is left, the
//! pivot moves to the window's end, and the suffixes of all window starts before it are made, the shortest first, each
//! from the one before. (This is the queue made of two stacks, with tables of accumulators for elements.)
//!
//! That pays where most keys have rows in most slices. Where a slice has few of a window's keys, the suffixes would be
//! much larger than the slices and as slow, and slices are merged for each window. A window that is merged so shows
//! which it is, and there is one before each move of the pivot.
//!
//! Suffixes and prefix are panes behind all slices, at the end of time. They are copies: whenever a row
//! comes into a slice that they hold, they are dropped and made again from the slices when needed; so are they at a
//! barrier, and no snapshot has them.

use std::collections::BTreeSet;

use millstream_operator::OperatorError;
use millstream_types::Window;

use super::panes::Panes;

/// Merged slices that following windows will use.
#[derive(Debug)]
pub(super) struct Running {
    slide: i64,
    slice: i64,
    /// Where windows are cut, once there has been one.
    pivot: Option<i64>,
    /// The starts of the suffixes that there are.
    suffixes: BTreeSet<i64>,
    /// Where the slices that the prefix holds end.
    prefix_end: i64,
    /// Whether the last window that was merged from its slices has its keys in many of them.
    dense: bool,
}

impl Running {
    /// For windows that start every `slide` and are made of slices of length `slice`.
    pub(super) fn new(slide: i64, slice: i64) -> Self {
        Self { slide, slice, pivot: None, suffixes: BTreeSet::new(), prefix_end: i64::MIN, dense: false }
    }

    /// A pane with the accumulators of a window, which is its caller's; none if its slices are better merged. Windows
    /// are asked for in order.
    pub(super) async fn window(
        &mut self,
        window: Window,
        panes: &mut Panes,
    ) -> Result<Option<Window>, OperatorError> {
        let pivot = match self.pivot {
            Some(pivot) if window.start < pivot && pivot <= window.end => pivot,
            _ if std::mem::take(&mut self.dense) => self.turn(window, panes).await?,
            _ => {
                self.reset(panes)?;
                return Ok(None);
            }
        };
        self.drop_suffixes(i64::MIN, window.start, panes)?;
        let suffix = self.suffix(window.start, pivot, panes).await?;
        for slice in panes.slices(Window::new(self.prefix_end.max(pivot), window.end), self.slice) {
            panes.merge(prefix(pivot), slice).await?;
        }
        self.prefix_end = window.end;
        panes.merge(suffix, prefix(pivot)).await?;
        self.suffixes.remove(&window.start);
        Ok(Some(suffix))
    }

    /// Learns from a window that has been merged from its slices.
    pub(super) fn observe(&mut self, window: Window, slices: &[Window], panes: &Panes) {
        let in_slices: usize = slices.iter().map(|&slice| panes.state().keys_of(slice)).sum();
        self.dense = in_slices > DENSE * panes.state().keys_of(window);
    }

    /// Forgets what holds a slice that a row comes into.
    pub(super) fn touch(&mut self, slice: Window, panes: &mut Panes) -> Result<(), OperatorError> {
        let Some(pivot) = self.pivot else { return Ok(()) };
        if slice.end <= pivot {
            self.drop_suffixes(i64::MIN, slice.end, panes)
        } else if slice.end <= self.prefix_end {
            self.prefix_end = pivot;
            Ok(panes.state_mut().clear(prefix(pivot))?)
        } else {
            Ok(())
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, panes: &mut Panes) -> Result<(), OperatorError> {
        self.drop_suffixes(i64::MIN, i64::MAX, panes)?;
        if let Some(pivot) = self.pivot.take() {
            panes.state_mut().clear(prefix(pivot))?;
        }
        Ok(())
    }

    /// Moves the pivot to the window's end and makes the suffixes of the windows that start before it.
    async fn turn(&mut self, window: Window, panes: &mut Panes) -> Result<i64, OperatorError> {
        self.reset(panes)?;
        let pivot = window.end;
        self.pivot = Some(pivot);
        self.prefix_end = pivot;
        let mut start = window.end - 1 - (window.end - 1 - window.start).rem_euclid(self.slide);
        while start >= window.start {
            self.suffix(start, pivot, panes).await?;
            start -= self.slide;
        }
        Ok(pivot)
    }

    /// The suffix from `start` on, made of the next shorter one and the slices before that if it is not there.
    async fn suffix(&mut self, start: i64, pivot: i64, panes: &mut Panes) -> Result<Window, OperatorError> {
        let made = suffix(start);
        let shorter = self.suffixes.range(start..).next().copied();
        if shorter == Some(start) {
            return Ok(made);
        }
        for slice in panes.slices(Window::new(start, shorter.unwrap_or(pivot)), self.slice) {
            panes.merge(made, slice).await?;
        }
        if let Some(shorter) = shorter {
            panes.merge(made, suffix(shorter)).await?;
        }
        self.suffixes.insert(start);
        Ok(made)
    }

    /// Drops the suffixes that start within `[from, to)`.
    fn drop_suffixes(&mut self, from: i64, to: i64, panes: &mut Panes) -> Result<(), OperatorError> {
        while let Some(start) = self.suffixes.range(from..to).next().copied() {
            self.suffixes.remove(&start);
            panes.state_mut().clear(suffix(start))?;
        }
        Ok(())
    }
}

/// In how many slices a key of a window has rows on average for suffixes to pay.
const DENSE: usize = 6;

/// The pane of a suffix.
fn suffix(start: i64) -> Window {
    Window::new(start, i64::MAX - 1)
}

/// The pane of the prefix.
fn prefix(pivot: i64) -> Window {
    Window::new(pivot, i64::MAX)
}
