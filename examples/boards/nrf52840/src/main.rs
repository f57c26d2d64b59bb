//! An MCP server on the UART of an nRF52840: pins P0.08 and P0.06, at 115,200 bits per second.
//!
//! * Allocator: `embedded-alloc`, 48 of 256 KiB.
//! * Clock: `embassy-time` on RTC1, in steps of 31 µs.
//! * Atomics: of the processor; one core, so critical sections mask interrupts.
//! * Seed of the hash tables: the random number generator of the chip.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use embassy_executor::Spawner;
use embassy_nrf::buffered_uarte::{BufferedUarte, InterruptHandler};
use embassy_nrf::peripherals::UARTE0;
use embassy_nrf::rng::Rng;
use embassy_nrf::uarte::Config;
use embedded_alloc::LlffHeap;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::Tool;
use mcp_sansio_embedded::{Driver, EmbassyClock, StreamSettings};
use mcp_sansio_handlers::{Call, Local, NoArguments, Server};
use static_cell::ConstStaticCell;

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

embassy_nrf::bind_interrupts!(struct Interrupts {
    UARTE0 => InterruptHandler<UARTE0>;
});

static SENT: ConstStaticCell<[u8; 256]> = ConstStaticCell::new([0; 256]);
static RECEIVED: ConstStaticCell<[u8; 512]> = ConstStaticCell::new([0; 512]);
/// The longest message that is accepted.
static LINE: ConstStaticCell<[u8; 2048]> = ConstStaticCell::new([0; 2048]);

fn server() -> Server<Local> {
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("this is JSON");
    Server::local("nrf52840", "1.0.0").limits(Limits::SMALL).tool_with(
        Tool::new("ping_board", schema).description("Says that the board is alive"),
        |_: Call<NoArguments>| "The board is alive.",
    )
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    // SAFETY: called once, before anything is allocated.
    unsafe {
        embedded_alloc::init!(HEAP, 48 * 1024);
    }
    let board = embassy_nrf::init(embassy_nrf::config::Config::default());
    let mut random = Rng::new_blocking(board.RNG);
    let uart = BufferedUarte::new(
        board.UARTE0,
        board.TIMER0,
        board.PPI_CH0,
        board.PPI_CH1,
        board.PPI_GROUP0,
        board.P0_08,
        board.P0_06,
        Interrupts,
        Config::default(),
        RECEIVED.take(),
        SENT.take(),
    );
    let (mut receiver, mut sender) = uart.split();
    let (line, mut output) = (LINE.take(), [0; 256]);
    loop {
        let endpoint = server().endpoint(random.blocking_next_u64()).expect("the server is valid");
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
