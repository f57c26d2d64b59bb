//! What the host calls.
//!
//! Lengths are in bytes, times in milliseconds of any clock of the host's that never goes back,
//! such as `performance.now()`. A connection is meant by its handle. What cannot be done is refused
//! and changes nothing: false, zero or a null pointer say so. A pointer is valid until the next
//! call that names its connection.
//!
//! After a trap, which is a fault of this module, every call is refused.
#![expect(unsafe_code, reason = "names that the host can see")]
// SAFETY, of all `unsafe(no_mangle)`: nothing is linked to the module that has one of these names.

use core::ptr;

use mcp_sansio::Instant;
use spin::Mutex;

use crate::connection::Connection;
use crate::connections::Connections;

/// Nobody else can hold the lock: there is one thread, and nothing here calls the host. Only a trap
/// leaves it locked.
static CONNECTIONS: Mutex<Connections> = Mutex::new(Connections::new());

/// Begins a connection. The two halves of `seed`, any random number, guard against a peer that aims
/// at collisions. Its handle; zero where there are too many.
#[unsafe(no_mangle)]
extern "C" fn connect(seed_low: u32, seed_high: u32, now_ms: f64) -> u32 {
    let seed = u64::from(seed_high) << 32 | u64::from(seed_low);
    let connections = CONNECTIONS.try_lock();
    connections.and_then(|mut open| open.connect(seed, instant(now_ms))).unwrap_or(0)
}

/// Where to write `length` bytes before [`receive`]. Null for more than 65,536, where the input has
/// ended, and while output has to be taken first.
#[unsafe(no_mangle)]
extern "C" fn input_buffer(handle: u32, length: usize) -> *mut u8 {
    with(handle, |connection| connection.input_buffer(length)).flatten().unwrap_or(ptr::null_mut())
}

/// Takes the first `length` bytes of the [`input_buffer`]: any bytes, not only whole lines.
#[unsafe(no_mangle)]
extern "C" fn receive(handle: u32, length: usize, now_ms: f64) -> bool {
    with(handle, |connection| connection.receive(length, instant(now_ms))).unwrap_or(false)
}

/// Takes the end of the input. What the server still has to say it says.
#[unsafe(no_mangle)]
extern "C" fn end_of_input(handle: u32, now_ms: f64) -> bool {
    with(handle, |connection| connection.end_of_input(instant(now_ms))).is_some()
}

/// Does what is due.
#[unsafe(no_mangle)]
extern "C" fn handle_timeout(handle: u32, now_ms: f64) -> bool {
    with(handle, |connection| connection.go_on(instant(now_ms))).is_some()
}

/// When to call [`handle_timeout`], if nothing comes before; infinity where nothing is due ever.
#[unsafe(no_mangle)]
extern "C" fn next_deadline_ms(handle: u32) -> f64 {
    let deadline = with(handle, |connection| connection.deadline()).flatten();
    deadline.map_or(f64::INFINITY, |deadline| deadline.as_nanos() as f64 / NANOS_PER_MILLI)
}

/// Where the bytes are that wait to be sent.
#[unsafe(no_mangle)]
extern "C" fn output_pointer(handle: u32) -> *const u8 {
    with(handle, |connection| connection.output().0).unwrap_or(ptr::null())
}

/// How many they are. After [`consume`] there may be more.
#[unsafe(no_mangle)]
extern "C" fn output_length(handle: u32) -> usize {
    with(handle, |connection| connection.output().1).unwrap_or(0)
}

/// Takes away the first `length` bytes of the output.
#[unsafe(no_mangle)]
extern "C" fn consume(handle: u32, length: usize) -> bool {
    with(handle, |connection| connection.consume(length)).unwrap_or(false)
}

/// Whether the server has nothing more to say and takes nothing more, or there is no such
/// connection.
#[unsafe(no_mangle)]
extern "C" fn is_over(handle: u32) -> bool {
    with(handle, |connection| connection.is_over()).unwrap_or(true)
}

/// Drops a connection and all that belongs to it.
#[unsafe(no_mangle)]
extern "C" fn close(handle: u32) -> bool {
    CONNECTIONS.try_lock().is_some_and(|mut open| open.close(handle))
}

/// `None` where there is no such connection.
fn with<T>(handle: u32, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
    CONNECTIONS.try_lock()?.get(handle).map(act)
}

const NANOS_PER_MILLI: f64 = 1e6;

/// The cast takes care of everything that is no time.
fn instant(now_ms: f64) -> Instant {
    Instant::from_nanos((now_ms * NANOS_PER_MILLI) as u64)
}
