//! An MCP server on the UART of an RP2350: pins 0 and 1, at 115,200 bits per second.
//!
//! * Allocator: `embedded-alloc`, 64 of 520 KiB.
//! * Clock: the timer of `embassy-time`, which does not run backwards.
//! * Atomics: of the processor. The chip has two cores, so `embassy-rp` provides the critical sections.
//! * Seed of the hash tables: the ring oscillator.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use embassy_executor::Spawner;
use embassy_rp::clocks::RoscRng;
use embassy_rp::peripherals::UART0;
use embassy_rp::uart::{BufferedInterruptHandler, BufferedUart, Config};
use embedded_alloc::LlffHeap;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::Tool;
use mcp_sansio_embedded::{Driver, EmbassyClock, StreamSettings};
use mcp_sansio_handlers::{Call, Local, NoArguments, Server};
use static_cell::ConstStaticCell;

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

embassy_rp::bind_interrupts!(struct Interrupts {
    UART0_IRQ => BufferedInterruptHandler<UART0>;
});

static SENT: ConstStaticCell<[u8; 256]> = ConstStaticCell::new([0; 256]);
static RECEIVED: ConstStaticCell<[u8; 512]> = ConstStaticCell::new([0; 512]);
/// The longest message that is accepted.
static LINE: ConstStaticCell<[u8; 2048]> = ConstStaticCell::new([0; 2048]);

fn server() -> Server<Local> {
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("this is JSON");
    Server::local("pico", "1.0.0").limits(Limits::SMALL).tool_with(
        Tool::new("ping_board", schema).description("Says that the board is alive"),
        |_: Call<NoArguments>| "The board is alive.",
    )
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    // SAFETY: called once, before anything is allocated.
    unsafe {
        embedded_alloc::init!(HEAP, 64 * 1024);
    }
    let board = embassy_rp::init(embassy_rp::config::Config::default());
    let uart = BufferedUart::new(
        board.UART0,
        board.PIN_0,
        board.PIN_1,
        Interrupts,
        SENT.take(),
        RECEIVED.take(),
        Config::default(),
    );
    let (mut sender, mut receiver) = uart.split();
    let (line, mut output) = (LINE.take(), [0; 256]);
    loop {
        let endpoint = server().endpoint(RoscRng.next_u64()).expect("the server is valid");
        let driver =
            Driver::new(endpoint, &mut receiver, &mut sender, EmbassyClock, line, &mut output);
        // It returns when the stream breaks: the next client gets a new connection.
        let _ = driver.settings(StreamSettings::DEVICE).run().await;
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
