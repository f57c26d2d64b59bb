//! The functions that the module exports to its host.
//!
//! Lengths are in bytes. Times are in milliseconds of any monotonic clock of the host, such as
//! `performance.now()`. A connection is identified by its handle. A call that is not possible is
//! refused without effect and returns `false`, zero or a null pointer. A pointer is valid until the
//! next call for its connection.
//!
//! After a trap, which is a bug of this module, every call is refused.
#![expect(unsafe_code, reason = "the exported functions need unmangled names")]
// SAFETY, of all `unsafe(no_mangle)`: no other symbol of the module has one of these names.

use core::ptr;

use mcp_sansio::Instant;
use spin::Mutex;

use crate::connection::Connection;
use crate::connections::Connections;

/// The lock is never contended: there is one thread, and no code here calls the host. Only a trap
/// leaves it locked.
static CONNECTIONS: Mutex<Connections> = Mutex::new(Connections::new());

/// Opens a connection and returns its handle, or zero if too many are open. `seed` consists of two
/// halves of any random number, which protects hash tables against collision attacks.
#[unsafe(no_mangle)]
extern "C" fn connect(seed_low: u32, seed_high: u32, now_ms: f64) -> u32 {
    let seed = u64::from(seed_high) << 32 | u64::from(seed_low);
    let connections = CONNECTIONS.try_lock();
    connections.and_then(|mut open| open.connect(seed, instant(now_ms))).unwrap_or(0)
}

/// Returns the address at which to write `length` bytes before [`receive`]. Returns null for more
/// than 65,536 bytes, after the end of input, and while output has to be consumed first.
#[unsafe(no_mangle)]
extern "C" fn input_buffer(handle: u32, length: usize) -> *mut u8 {
    with(handle, |connection| connection.input_buffer(length)).flatten().unwrap_or(ptr::null_mut())
}

/// Reads the first `length` bytes of the [`input_buffer`]. They need not be complete lines.
#[unsafe(no_mangle)]
extern "C" fn receive(handle: u32, length: usize, now_ms: f64) -> bool {
    with(handle, |connection| connection.receive(length, instant(now_ms))).unwrap_or(false)
}

/// Reports the end of the input. The server still sends its pending output.
#[unsafe(no_mangle)]
extern "C" fn end_of_input(handle: u32, now_ms: f64) -> bool {
    with(handle, |connection| connection.end_of_input(instant(now_ms))).is_some()
}

/// Processes expired deadlines.
#[unsafe(no_mangle)]
extern "C" fn handle_timeout(handle: u32, now_ms: f64) -> bool {
    with(handle, |connection| connection.advance(instant(now_ms))).is_some()
}

/// Returns the time at which to call [`handle_timeout`] if no other call comes before, or infinity.
#[unsafe(no_mangle)]
extern "C" fn next_deadline_ms(handle: u32) -> f64 {
    let deadline = with(handle, |connection| connection.deadline()).flatten();
    deadline.map_or(f64::INFINITY, |deadline| deadline.as_nanos() as f64 / NANOS_PER_MILLI)
}

/// Returns the address of the pending output.
#[unsafe(no_mangle)]
extern "C" fn output_pointer(handle: u32) -> *const u8 {
    with(handle, |connection| connection.output().0).unwrap_or(ptr::null())
}

/// Returns the length of the pending output. There may be more after [`consume`].
#[unsafe(no_mangle)]
extern "C" fn output_length(handle: u32) -> usize {
    with(handle, |connection| connection.output().1).unwrap_or(0)
}

/// Removes the first `length` bytes of the output.
#[unsafe(no_mangle)]
extern "C" fn consume(handle: u32, length: usize) -> bool {
    with(handle, |connection| connection.consume(length)).unwrap_or(false)
}

/// Whether the server has finished, or the handle is unknown.
#[unsafe(no_mangle)]
extern "C" fn is_over(handle: u32) -> bool {
    with(handle, |connection| connection.is_over()).unwrap_or(true)
}

/// Drops a connection and all of its data.
#[unsafe(no_mangle)]
extern "C" fn close(handle: u32) -> bool {
    CONNECTIONS.try_lock().is_some_and(|mut open| open.close(handle))
}

/// Returns `None` if the handle is unknown.
fn with<T>(handle: u32, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
    CONNECTIONS.try_lock()?.get(handle).map(act)
}

const NANOS_PER_MILLI: f64 = 1e6;

/// The cast maps NaN and negative numbers to zero and saturates large ones.
fn instant(now_ms: f64) -> Instant {
    Instant::from_nanos((now_ms * NANOS_PER_MILLI) as u64)
}
