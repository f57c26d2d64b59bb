//! An MCP server in a WebAssembly module without imports: the host passes bytes and the time, and
//! fetches the output. The exported functions are in `abi.rs`.

// On other targets, the crate is only checked.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

mod abi;
mod clock;
mod connection;
mod connections;
mod service;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Traps. A locked mutex stays locked, so later calls are refused.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
