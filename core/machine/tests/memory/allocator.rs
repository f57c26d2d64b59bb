//! The system's allocator, counting what a plain one would take for each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// Whether what is allocated and given back counts.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// What an allocation takes of a heap: a header of a word, rounded up to two words.
fn cost(size: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    (size + WORD).next_multiple_of(2 * WORD)
}

fn counts() -> bool {
    // A thread that is ending has no counter any more, and is not one that is measured.
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

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    // A plain allocator makes a larger place before it gives the smaller one back.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give_back(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Does something whose heap counts, from beginning to end: what it allocates is given back in such
/// a call as well.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> T {
    COUNTS.set(true);
    let made = work();
    COUNTS.set(false);
    made
}

/// Begins to measure anew.
pub(crate) fn begin() {
    HELD.set(0);
    PEAK.set(0);
}

/// The heap that is held now, in bytes.
#[allow(dead_code, reason = "one of the two that use this file has no need of it")]
pub(crate) fn held() -> usize {
    HELD.get()
}

/// The most heap that was held at once, in bytes.
pub(crate) fn peak() -> usize {
    PEAK.get()
}

#[test]
fn both_places_of_a_buffer_that_moves_are_seen() {
    begin();
    let mut buffer = Vec::new();
    measured(|| buffer.reserve_exact(1000));
    buffer.resize(1000, 0_u8);
    measured(|| buffer.reserve_exact(1000));
    std::hint::black_box(&buffer);
    measured(|| drop(buffer));
    assert!((3000..3100).contains(&peak()), "{}", peak());
}
