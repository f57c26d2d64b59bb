//! An MCP server on a Cortex-M3, in a bare loop: the board lm3s6965evb, as QEMU has it.
//!
//! UART 0 is the server's stream, and a break on it begins another connection. UART 1 says why the
//! device has reset, if it has.

#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod fault;
mod heap;
mod lamp;
mod power;
mod register;
mod sensor;
mod service;
mod stack;
mod timers;
mod uart;

use alloc::rc::Rc;

use cortex_m::Peripherals;
use cortex_m_rt::entry;
use mcp_sansio::Instant;
use mcp_sansio_embedded::{NextPoll, PolledDriver};
use mcp_sansio_handlers::{Local, Server, ServerEndpoint};

use sensor::Sensor;
use timers::Timers;
use uart::{Receiver, Sender};

/// The longest line that is taken, in bytes. Calls with short arguments and the metadata of
/// 2026-07-28 need about half of it.
const LINE_LENGTH_MAX: usize = 1024;

/// Keys hash tables. The device has no randomness and trusts the one host on its line.
const SEED: u64 = 0;

#[entry]
fn main() -> ! {
    let peripherals = Peripherals::take().expect("nobody has taken them");
    heap::start();
    power::turn_on();
    lamp::start();
    clock::start(peripherals.SYST);
    let (mut receiver, mut sender) = uart::start();
    let (sensor, timers) = (Rc::new(Sensor::new()), Timers::default());
    let server = service::server(&sensor, &timers);
    let mut line = [0; LINE_LENGTH_MAX];
    loop {
        // After an end, such as a break or too many errors on the line, the next connection begins.
        let mut driver = connection(&server, (&mut receiver, &mut sender), &mut line);
        let remote = driver.endpoint().handle();
        let mut shown = sensor.value();
        loop {
            let now = clock::now();
            sensor.advance(now);
            timers.wake_due(now);
            if sensor.value().abs_diff(shown) >= 8 {
                shown = sensor.value();
                // Where there is no room for it, the next change tells.
                let _told = remote.resource_updated(service::TEMPERATURE);
            }
            match driver.poll(now) {
                Ok(NextPoll::Now) => {}
                Ok(NextPoll::Wait(until)) => sleep(until, || driver.is_woken()),
                Ok(NextPoll::Closed) | Err(_) => break,
            }
        }
    }
}

type Connection<'l> = PolledDriver<'l, ServerEndpoint<Local>, &'l mut Receiver, &'l mut Sender>;

/// The server's side of a connection on the serial port, which reads into `line`.
// Not inlined, so that the stack that it takes to put it together is free afterwards.
#[inline(never)]
fn connection<'l>(
    server: &Server<Local>,
    (receiver, sender): (&'l mut Receiver, &'l mut Sender),
    line: &'l mut [u8],
) -> Connection<'l> {
    // Without the error, whose text would take two kilobytes.
    let Ok(endpoint) = server.endpoint(SEED) else { panic!("what is offered has good names") };
    PolledDriver::new(endpoint, receiver, sender, line)
}

/// Sleeps until the next interrupt, which comes every millisecond at the latest; not at all where
/// there is something to do already.
fn sleep(until: Option<Instant>, is_woken: impl Fn() -> bool) {
    // An interrupt that comes in between ends the sleep, though it is served only afterwards.
    cortex_m::interrupt::free(|_| {
        let is_due = until.is_some_and(|until| until <= clock::now());
        if !uart::has_received() && !is_woken() && !is_due {
            cortex_m::asm::wfi();
        }
    });
}
