//! The heap and its peak use.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

use embedded_alloc::LlffHeap;

use crate::HEAP_SIZE as SIZE;

static mut MEMORY: [MaybeUninit<u8>; SIZE] = [MaybeUninit::uninit(); SIZE];

#[global_allocator]
static HEAP: Measured = Measured { heap: LlffHeap::empty(), peak: AtomicUsize::new(0) };

/// An allocator that records its peak use.
struct Measured {
    heap: LlffHeap,
    peak: AtomicUsize,
}

// SAFETY: every call is forwarded to the inner allocator.
unsafe impl GlobalAlloc for Measured {
    // Not inlined, because the other ways to allocate call it.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        let memory = unsafe { self.heap.alloc(layout) };
        self.peak.fetch_max(self.heap.used(), Ordering::Relaxed);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { self.heap.dealloc(memory, layout) }
    }
}

/// Gives the heap its memory. Must be called once, before the first allocation.
pub(crate) fn start() {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(STARTED.swap(1, Ordering::Relaxed), 0, "the heap is started once");
    // SAFETY: the memory is used for nothing else, and this runs only once.
    unsafe { HEAP.heap.init((&raw mut MEMORY).addr(), SIZE) }
}

/// Returns the peak number of bytes in use.
pub(crate) fn peak() -> usize {
    HEAP.peak.load(Ordering::Relaxed)
}
