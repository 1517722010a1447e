//! One value a key.

use super::{Handle, all_keys, spec_of};
use crate::bits::{BitBuilder, is_set};
use crate::column::{Batch, Mismatch};
use crate::host::{Cells, ValueHandle};
use crate::manifest::{StateKind, StateSpec};
use crate::row::{Input, State};

/// Keyed state of one value: `ValueState<i64>`, or of any `#[derive(State)]` struct.
///
/// All methods are about the current key.
pub struct ValueState<T: State> {
    name: String,
    host: ValueHandle,
    slots: Vec<Slot<T>>,
    /// Whether the host's values are in `slots`.
    loaded: bool,
    /// Keys that were written, in the order of their first write.
    written: Vec<u32>,
    keys: usize,
    current: usize,
}

struct Slot<T> {
    value: Option<T>,
    written: bool,
}

impl<T: State> ValueState<T> {
    /// The value, if there is one.
    #[inline]
    pub fn get(&mut self) -> Option<&T> {
        self.ensure_loaded();
        self.slots[self.current].value.as_ref()
    }

    /// The value to change in place; nothing where there is none.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.ensure_loaded();
        if self.slots[self.current].value.is_some() {
            self.mark();
        }
        self.slots[self.current].value.as_mut()
    }

    /// The value to change in place, put there if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, make: impl FnOnce() -> T) -> &mut T {
        self.ensure_loaded();
        self.mark();
        self.slots[self.current].value.get_or_insert_with(make)
    }

    /// Sets the value.
    #[inline]
    pub fn set(&mut self, value: T) {
        self.ensure_slots();
        self.mark();
        self.slots[self.current].value = Some(value);
    }

    /// Takes the value out: the key has none afterwards.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.ensure_loaded();
        self.mark();
        self.slots[self.current].value.take()
    }

    /// Removes the value.
    #[inline]
    pub fn clear(&mut self) {
        self.ensure_slots();
        self.mark();
        self.slots[self.current].value = None;
    }

    #[inline]
    fn mark(&mut self) {
        let slot = &mut self.slots[self.current];
        if !slot.written {
            slot.written = true;
            self.written.push(self.current as u32);
        }
    }

    #[inline]
    fn ensure_slots(&mut self) {
        if self.slots.is_empty() {
            self.slots.resize_with(self.keys, || Slot { value: None, written: false });
        }
    }

    #[inline]
    fn ensure_loaded(&mut self) {
        if !self.loaded {
            self.load();
        }
    }

    #[cold]
    fn load(&mut self) {
        self.ensure_slots();
        let cells = self.host.read(&all_keys(self.keys));
        if let Err(mismatch) = fill(&mut self.slots, &cells) {
            panic!("state `{}`: {mismatch}", self.name);
        }
        self.loaded = true;
    }
}

/// Puts the host's values where the call has not written.
fn fill<T: State>(slots: &mut [Slot<T>], cells: &Cells) -> Result<(), Mismatch> {
    if cells.present.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    if cells.values.rows != slots.len() {
        return Err(Mismatch::Rows { expected: slots.len(), found: cells.values.rows });
    }
    let reader = <T as Input>::reader(&cells.values)?;
    for (row, slot) in slots.iter_mut().enumerate() {
        if is_set(&cells.present, row) && !slot.written {
            slot.value = Some(T::read(&reader, row));
        }
    }
    Ok(())
}

impl<T: State> Handle for ValueState<T> {
    fn spec(name: &str) -> StateSpec {
        spec_of::<T>(name, StateKind::Value)
    }

    fn open(name: &str) -> Result<Self, String> {
        let host = ValueHandle::open(name)?;
        let name = name.to_owned();
        Ok(Self { name, host, slots: Vec::new(), loaded: false, written: Vec::new(), keys: 0, current: 0 })
    }

    fn begin(&mut self, keys: usize) {
        self.slots.clear();
        self.written.clear();
        self.loaded = false;
        self.keys = keys;
    }

    #[inline(always)]
    fn select(&mut self, key: usize) {
        self.current = key;
    }

    fn flush(&mut self) {
        if self.written.is_empty() {
            return;
        }
        let rows = self.written.len();
        let mut present = BitBuilder::with_capacity(rows);
        let mut builder = T::builder(rows);
        for &key in &self.written {
            let value = self.slots[key as usize].value.take();
            present.push(value.is_some());
            match value {
                Some(value) => value.append_to(&mut builder),
                None => T::push_absent(&mut builder),
            }
        }
        let values = Batch { rows, columns: T::finish(builder) };
        self.host.write(&self.written, Cells { present: present.finish(), values });
        self.slots.clear();
        self.written.clear();
        self.loaded = false;
    }
}
