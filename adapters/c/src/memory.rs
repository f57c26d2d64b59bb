//! Memory and panics on bare metal, where the program supplies both.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use linked_list_allocator::Heap;

use crate::{McpError, result};

/// Allocates `size` bytes, aligned to `alignment`, a power of two. Returns null if there is no memory.
pub type McpAllocate =
    Option<extern "C" fn(context: *mut c_void, size: usize, alignment: usize) -> *mut c_void>;

/// Frees what the function above returned, with the same size and alignment.
pub type McpRelease =
    Option<extern "C" fn(context: *mut c_void, memory: *mut c_void, size: usize, alignment: usize)>;

/// Handles a panic: the memory is used up, or the library has a bug. It must not return, and must not
/// call the library: reset the device.
pub type McpPanic = Option<extern "C" fn(context: *mut c_void)>;

/// Gives the library its memory: `length` bytes at `memory`, for as long as the program runs, and for
/// nothing else. Call this or `mcp_start` once, before all other functions. Only on bare metal.
///
/// With an arena, all calls of the library have to come from one thread, and none from an interrupt.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_start_arena(
    memory: *mut c_void,
    length: usize,
    on_panic: McpPanic,
    context: *mut c_void,
) -> McpError {
    result((|| {
        let state = start()?;
        if memory.is_null() {
            return Err(McpError::Null);
        }
        let mut heap = Heap::empty();
        // SAFETY: by the contract of the header the memory is used for nothing else.
        unsafe { heap.init(memory.cast(), length) };
        *state = State { source: Source::Arena { heap, peak: 0 }, on_panic, context };
        Ok(())
    })())
}

/// Makes the library allocate with functions of the program, such as those of a real-time operating
/// system. Call this or `mcp_start_arena` once, before all other functions. Only on bare metal.
///
/// If several threads call the library, the functions have to be safe for that.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_start(
    allocate: McpAllocate,
    release: McpRelease,
    on_panic: McpPanic,
    context: *mut c_void,
) -> McpError {
    result((|| {
        let state = start()?;
        let (Some(allocate), Some(release)) = (allocate, release) else {
            return Err(McpError::Null);
        };
        *state = State { source: Source::Program { allocate, release }, on_panic, context };
        Ok(())
    })())
}

/// Returns the largest number of bytes of the arena that were in use, 0 without an arena. Only on
/// bare metal.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_arena_peak() -> usize {
    // SAFETY: see `Global`.
    match unsafe { &(*GLOBAL.0.get()).source } {
        Source::Arena { peak, .. } => *peak,
        _ => 0,
    }
}

struct State {
    source: Source,
    on_panic: McpPanic,
    context: *mut c_void,
}

enum Source {
    None,
    Arena {
        heap: Heap,
        peak: usize,
    },
    Program {
        allocate: extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
        release: extern "C" fn(*mut c_void, *mut c_void, usize, usize),
    },
}

struct Global(UnsafeCell<State>);

// SAFETY: by the contract of the header the state is set before all other calls, once. After that an
// arena is used by one thread only, and without one the state is only read.
unsafe impl Sync for Global {}

#[global_allocator]
static GLOBAL: Global = Global(UnsafeCell::new(State {
    source: Source::None,
    on_panic: None,
    context: ptr::null_mut(),
}));

/// Returns the state, unless it is set already.
fn start() -> Result<&'static mut State, McpError> {
    // SAFETY: see `Global`; no other reference exists during this call.
    let state = unsafe { &mut *GLOBAL.0.get() };
    if matches!(state.source, Source::None) { Ok(state) } else { Err(McpError::State) }
}

// SAFETY: memory comes from the arena or from the program, whose functions keep the contract of the
// header.
unsafe impl GlobalAlloc for Global {
    // Not inlined, because the other ways to allocate call it.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see `Global`; the functions of the program do not call the library.
        let state = unsafe { &mut *self.0.get() };
        match &mut state.source {
            Source::None => ptr::null_mut(),
            Source::Arena { heap, peak } => {
                let memory = heap.allocate_first_fit(layout);
                *peak = (*peak).max(heap.used());
                memory.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
            Source::Program { allocate, .. } => {
                allocate(state.context, layout.size(), layout.align()).cast()
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: see `alloc`.
        let state = unsafe { &mut *self.0.get() };
        match &mut state.source {
            Source::None => {}
            Source::Arena { heap, .. } => {
                if let Some(memory) = NonNull::new(memory) {
                    // SAFETY: the caller got the memory from `alloc` with this layout.
                    unsafe { heap.deallocate(memory, layout) }
                }
            }
            Source::Program { release, .. } => {
                release(state.context, memory.cast(), layout.size(), layout.align());
            }
        }
    }
}

/// Tells the program, which resets the device.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: see `Global`. The panic ends all other uses.
    let state = unsafe { &*GLOBAL.0.get() };
    if let Some(on_panic) = state.on_panic {
        on_panic(state.context);
    }
    loop {}
}
