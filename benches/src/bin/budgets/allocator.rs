//! The system's allocator with counters.

#![allow(unsafe_code, reason = "an allocator can only be replaced by unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);

/// Returns the number of allocations and reallocations.
pub(crate) fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Returns the bytes currently allocated.
pub(crate) fn held() -> u64 {
    HELD.load(Ordering::Relaxed)
}

// The program is single-threaded: a load and a store suffice, and cost less than an atomic
// addition.
fn add(to: &AtomicU64, number: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
}

fn allocated(bytes: usize) {
    add(&COUNT, 1);
    add(&HELD, bytes as u64);
}

fn freed(bytes: usize) {
    add(&HELD, (bytes as u64).wrapping_neg());
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(size);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
