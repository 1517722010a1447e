//! Text and bytes on their way into a guest: from where views show them into the guest's memory, in one copy.

use std::ops::Range;

use arrow_buffer::{Buffer, NullBuffer};

/// The values of a view array, to be put one behind the other: a `list<u8>` in `wit/`.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    views: &'a [u128],
    nulls: Option<&'a NullBuffer>,
    buffers: &'a [Buffer],
    bytes: usize,
}

impl<'a> Values<'a> {
    /// What `views` show of `buffers` or hold themselves, those that are missing left out: `bytes` in all.
    pub(crate) fn new(
        views: &'a [u128],
        nulls: Option<&'a NullBuffer>,
        buffers: &'a [Buffer],
        bytes: usize,
    ) -> Self {
        Self { views, nulls, buffers, bytes }
    }

    /// How many bytes the values take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Fills `into`, which has room for all values and no more.
    pub(crate) fn copy_to(&self, into: &mut [u8]) {
        let mut copy = Copy { into, at: 0, buffers: self.buffers, buffer: 0, run: 0..0 };
        match self.nulls {
            None => self.views.iter().for_each(|&view| copy.value(view)),
            Some(nulls) => {
                let present = self.views.iter().zip(nulls).filter(|(_, valid)| *valid);
                present.for_each(|(&view, _)| copy.value(view));
            }
        }
        copy.run();
    }

    #[cfg(test)]
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0xee; self.bytes];
        self.copy_to(&mut bytes);
        bytes
    }
}

/// Short values stand in their views; those of long ones that are neighbours in a buffer, as they are in most columns,
/// are copied together.
struct Copy<'a> {
    into: &'a mut [u8],
    at: usize,
    buffers: &'a [Buffer],
    buffer: usize,
    run: Range<usize>,
}

impl Copy<'_> {
    #[inline]
    fn value(&mut self, view: u128) {
        let length = length(view);
        if length > INLINE {
            let (buffer, start) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
            if buffer != self.buffer || start != self.run.end {
                self.run();
                (self.buffer, self.run) = (buffer, start..start);
            }
            self.run.end += length;
        } else {
            self.run();
            self.short(&view.to_le_bytes()[4..], length);
        }
    }

    /// All twelve bytes are copied where there is room for them: what is too much is the next value's place.
    #[inline]
    fn short(&mut self, value: &[u8], length: usize) {
        match self.into.get_mut(self.at..self.at + INLINE) {
            Some(room) => room.copy_from_slice(value),
            None => self.into[self.at..self.at + length].copy_from_slice(&value[..length]),
        }
        self.at += length;
    }

    /// Copies the run that has been seen, and begins another behind it.
    #[inline]
    fn run(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let end = self.at + self.run.len();
        self.into[self.at..end].copy_from_slice(&self.buffers[self.buffer][self.run.clone()]);
        self.at = end;
        self.run.start = self.run.end;
    }
}

/// The length of the value of a view.
pub(crate) fn length(view: u128) -> usize {
    view as u32 as usize
}

/// The longest value that a view holds itself, without a buffer.
const INLINE: usize = 12;
