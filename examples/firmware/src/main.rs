//! An MCP server in a bare loop on a Cortex-M3: the board lm3s6965evb of QEMU.
//!
//! UART 0 carries the MCP stream; a break on it starts another connection. UART 1 reports why the
//! device was reset.

#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod fault;
mod heap;
mod interrupts;
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
use mcp_sansio_handlers::Local;
use mcp_sansio_handlers::endpoint::{IntoEndpoint as _, ServerEndpoint};

use sensor::Sensor;
use timers::Timers;
use uart::{Receiver, Sender};

/// The frequency of the processor: the PLL's 200 MHz divided by 16, as QEMU configures it after a
/// reset. A real board has to start its PLL first.
const HERTZ: u32 = 12_500_000;

/// The size of the heap, in bytes.
///
/// The server needs two fifths of it when idle, and at most four fifths under any input. With the stack and
/// all variables, the program needs less than 20 KiB.
const HEAP_SIZE: usize = 10_736;

/// The maximum length of a received line, in bytes. Calls with short arguments and the metadata of
/// 2026-07-28 need about half of it.
const LINE_LENGTH_MAX: usize = 1024;

/// The seed of the hash tables. The device has no source of randomness and trusts the host on its
/// line.
const SEED: u64 = 0;

#[entry]
fn main() -> ! {
    let peripherals = Peripherals::take().expect("taken once");
    heap::start();
    power::turn_on();
    lamp::start();
    clock::start(peripherals.SYST);
    let (mut receiver, mut sender) = uart::start();
    let (sensor, timers) = (Rc::new(Sensor::new()), Timers::default());
    let mut line = [0; LINE_LENGTH_MAX];
    loop {
        // A break ends the connection at once: the answers that are left are not for the next host.
        let serial = (&mut receiver, &mut sender);
        let mut driver = connection((&sensor, &timers), serial, &mut line);
        let remote = driver.endpoint().handle();
        let mut shown = sensor.value();
        while !uart::take_break() {
            let now = clock::now();
            sensor.advance(now);
            timers.wake_due(now);
            if sensor.value().abs_diff(shown) >= 8 {
                shown = sensor.value();
                // If the queue is full, the next change is reported instead.
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

/// Returns a driver for a connection on the serial port, which reads into `line`, and its server.
// Not inlined, so that the stack used to build them is released afterwards. A server for all
// connections would be cloned, which takes code.
#[inline(never)]
fn connection<'l>(
    (sensor, timers): (&Rc<Sensor>, &Timers),
    (receiver, sender): (&'l mut Receiver, &'l mut Sender),
    line: &'l mut [u8],
) -> Connection<'l> {
    // Discards the error, whose text would take two kilobytes of flash.
    let endpoint = service::server(sensor, timers).into_endpoint(SEED);
    let Ok(endpoint) = endpoint else { panic!("the names are valid") };
    PolledDriver::new(endpoint, receiver, sender, line)
}

/// Sleeps until the next interrupt, at most a millisecond, unless work is already pending.
fn sleep(until: Option<Instant>, is_woken: impl Fn() -> bool) {
    // An interrupt that arrives in between ends the sleep, although it is handled only afterwards.
    cortex_m::interrupt::free(|_| {
        let is_due = until.is_some_and(|until| until <= clock::now());
        if !uart::has_received() && !is_woken() && !is_due {
            cortex_m::asm::wfi();
        }
    });
}
