//! Counts allocations: the allocator of the released command with two counters a thread in front of it.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; each method passes its duties on as they are"
)]

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { allocations: 0, bytes: 0 }) };
}

/// How much a thread has allocated since its start, freed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// What this thread has allocated as of now.
pub(crate) fn allocated() -> Allocated {
    ALLOCATED.get()
}

struct Counting;

fn count(bytes: usize) {
    let Allocated { allocations, bytes: so_far } = ALLOCATED.get();
    ALLOCATED.set(Allocated { allocations: allocations + 1, bytes: so_far + bytes as u64 });
}

// SAFETY: every method is mimalloc's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    /// A block that grows counts as an allocation of what it grows by.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.realloc(at, layout, size) }
    }
}
