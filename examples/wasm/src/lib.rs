//! An MCP server in a WebAssembly module without any import: whoever loads it brings bytes and the
//! time, and takes bytes. What it exports is in `abi.rs`.

// Elsewhere it is only checked, not run.
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

/// Ends the call of the host with a trap. What was locked stays so, and later calls are refused.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
