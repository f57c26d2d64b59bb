//! The system allocator, with a count of the bytes that a simple allocator would use, per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// Whether allocations are counted.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// Returns the heap that an allocation uses: with a header of one word, rounded up to two words.
fn cost(size: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    (size + WORD).next_multiple_of(2 * WORD)
}

fn counts() -> bool {
    // A thread that is ending has no counter. It is never a measured thread.
    COUNTS.try_with(Cell::get).unwrap_or(false)
}

fn take(size: usize) {
    if !counts() {
        return;
    }
    let _gone = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(cost(size)));
        let _gone = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn give_back(size: usize) {
    if !counts() {
        return;
    }
    let _gone = HELD.try_with(|held| held.set(held.get().wrapping_sub(cost(size))));
}

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    // A simple allocator allocates the new block before it frees the old one.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give_back(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work` and counts its allocations. They must be freed inside such a call as well.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> T {
    COUNTS.set(true);
    let made = work();
    COUNTS.set(false);
    made
}

/// Starts a new measurement.
pub(crate) fn begin() {
    HELD.set(0);
    PEAK.set(0);
}

/// Returns the heap in use, in bytes.
#[allow(dead_code, reason = "one of the two test crates with this file does not use it")]
pub(crate) fn held() -> usize {
    HELD.get()
}

/// Returns the peak of the heap in use, in bytes.
pub(crate) fn peak() -> usize {
    PEAK.get()
}

#[test]
fn a_reallocation_counts_both_blocks() {
    begin();
    let mut buffer = Vec::new();
    measured(|| buffer.reserve_exact(1000));
    buffer.resize(1000, 0_u8);
    measured(|| buffer.reserve_exact(1000));
    std::hint::black_box(&buffer);
    measured(|| drop(buffer));
    assert!((3000..3100).contains(&peak()), "{}", peak());
}
