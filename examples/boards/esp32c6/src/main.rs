//! An MCP server on the USB serial port of an ESP32-C6.
//!
//! * Allocator: `esp-alloc`, 64 of 512 KiB.
//! * Clock: `embassy-time` on a timer of the chip, started by `esp-rtos`.
//! * Atomics: of the processor. An ESP32-C3 has none: take `mcp-sansio-fixed`, as on the STM32G0.
//! * Seed of the hash tables: the random number generator of the chip.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use embassy_executor::Spawner;
use esp_hal::rng::Rng;
use esp_hal::timer::timg::TimerGroup;
use esp_hal::usb::usb_serial_jtag::UsbSerialJtag;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::Tool;
use mcp_sansio_embedded::{Driver, EmbassyClock, StreamSettings};
use mcp_sansio_handlers::{Call, Local, NoArguments, Server};

fn server() -> Server<Local> {
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("this is JSON");
    Server::local("esp32c6", "1.0.0").limits(Limits::SMALL).tool_with(
        Tool::new("ping_board", schema).description("Says that the board is alive"),
        |_: Call<NoArguments>| "The board is alive.",
    )
}

#[esp_rtos::main]
async fn main(_spawner: Spawner) {
    let board = esp_hal::init(esp_hal::Config::default());
    esp_alloc::heap_allocator!(size: 64 * 1024);
    esp_rtos::start(TimerGroup::new(board.TIMG0).timer0, board.FROM_CPU_INTR0);
    let (mut receiver, mut sender) = UsbSerialJtag::new(board.USB_DEVICE).into_async().split();
    let (mut line, mut output) = ([0; 2048], [0; 256]);
    let random = Rng::new();
    loop {
        let seed = u64::from(random.random()) << 32 | u64::from(random.random());
        let endpoint = server().endpoint(seed).expect("the server is valid");
        let driver =
            Driver::new(endpoint, &mut receiver, &mut sender, EmbassyClock, &mut line, &mut output);
        // It returns when the stream breaks: the next client gets a new connection.
        let _ = driver.settings(StreamSettings::DEVICE).run().await;
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    esp_hal::system::software_reset()
}
