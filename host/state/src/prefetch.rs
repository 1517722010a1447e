//! Asking the processor for memory before it is needed: the one file of this crate with unsafe code.
//!
//! A table of a million keys does not fit into a cache, so each probe waits for memory. Probes of a batch do not
//! depend on each other; asking for their lines some rows ahead makes the waits overlap. Plain loads overlap too,
//! but only until the first mispredicted branch, and a probe ends with one. What it gains stands in the bench.
#![expect(unsafe_code, reason = "the intrinsic is unsafe to call though it cannot fault")]

/// Asks for the cache line of `slice[index]`; does nothing where there is no such element.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the pointer comes from a reference, and a prefetch does not access memory as the program sees it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
