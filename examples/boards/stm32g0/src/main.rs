//! An MCP server without an allocator on USART2 of an STM32G071 (Nucleo board: the USB serial port), at
//! 115,200 bits per second.
//!
//! * Allocator: none. The memory for messages is declared here.
//! * Clock: none. The server has no deadlines.
//! * Atomics: a Cortex-M0+ has no compare-and-swap, and the server needs none.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use embassy_executor::Spawner;
use embassy_stm32::peripherals::USART2;
use embassy_stm32::usart::{BufferedInterruptHandler, BufferedUart, Config};
use embedded_io_async::{Read, Write};
use mcp_sansio_fixed::{Call, Connection, Failure, Service, Text, Tool};
use static_cell::ConstStaticCell;

embassy_stm32::bind_interrupts!(struct Interrupts {
    USART2 => BufferedInterruptHandler<USART2>;
});

static SENT: ConstStaticCell<[u8; 256]> = ConstStaticCell::new([0; 256]);
static RECEIVED: ConstStaticCell<[u8; 512]> = ConstStaticCell::new([0; 512]);
/// The longest message in, and the longest out.
static LINE: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);
static OUTPUT: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);

struct Board;

impl Service for Board {
    const NAME: &'static str = "stm32g0";
    const VERSION: &'static str = "1.0.0";
    const TOOLS: &'static [Tool<Self>] =
        &[Tool::new("ping_board", r#"{"type":"object"}"#, Self::ping)
            .description("Says that the board is alive")];
}

impl Board {
    fn ping(&mut self, _: &Call<'_>, out: &mut Text<'_, '_>) -> Result<(), Failure> {
        out.push_str("The board is alive.");
        Ok(())
    }
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let board = embassy_stm32::init(embassy_stm32::Config::default());
    let mut uart = BufferedUart::new(
        board.USART2,
        board.PA3,
        board.PA2,
        SENT.take(),
        RECEIVED.take(),
        Interrupts,
        Config::default(),
    )
    .expect("the bit rate can be set");
    let Ok(mut connection) = Connection::new(Board, LINE.take(), OUTPUT.take()) else {
        panic!("the output is too small")
    };
    loop {
        while let Some(bytes) = connection.poll_transmit() {
            let length = bytes.len();
            if uart.write_all(bytes).await.is_err() {
                cortex_m::peripheral::SCB::sys_reset();
            }
            connection.advance(length);
        }
        // This driver does not report lost or garbled bytes: see packets in the guide.
        if let Ok(length) = uart.read(connection.space()).await {
            connection.commit(length);
        }
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
