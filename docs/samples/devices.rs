//! The code of docs/guide/devices.md.

mod a_bare_loop {
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        use core::time::Duration;

        use mcp_sansio::Instant;
        use mcp_sansio::jsonrpc::RawJson;
        use mcp_sansio::peer::Limits;
        use mcp_sansio::protocol::Tool;
        use mcp_sansio_embedded::{NextPoll, PolledDriver};
        use mcp_sansio_handlers::{Call, NoArguments, Server};

        #[derive(Default)]
        struct Uart {
            input: std::collections::VecDeque<u8>,
            output: Vec<u8>,
        }
        impl embedded_io::ErrorType for Uart {
            type Error = core::convert::Infallible;
        }
        impl embedded_io::Read for Uart {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
                Ok(std::io::Read::read(&mut self.input, buffer).unwrap())
            }
        }
        impl embedded_io::ReadReady for Uart {
            fn read_ready(&mut self) -> Result<bool, Self::Error> {
                Ok(true)
            }
        }
        impl embedded_io::Write for Uart {
            fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
                self.output.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> Result<(), Self::Error> {
                Ok(())
            }
        }
        let (mut receiver, mut sender) = (Uart::default(), Uart::default());
        receiver.input.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        fn now() -> Instant {
            Instant::ZERO
        }
        fn sleep_until(_: Option<Instant>) {}

        let schema = RawJson::parse(r#"{"type":"object"}"#)?;
        let server = Server::local("thermometer", "1.0.0").limits(Limits::SMALL).tool_with(
            Tool::new("read", schema).description("Reads the sensor"),
            |_: Call<NoArguments>| "21.5 °C",
        );

        let mut line = [0; 1024]; // the longest message that is accepted
        let mut driver =
            PolledDriver::new(server.endpoint(42)?, &mut receiver, &mut sender, &mut line);
        loop {
            match driver.poll(now())? {
                NextPoll::Now => {}
                NextPoll::Wait(until) => sleep_until(until), // or until an interrupt
                NextPoll::Closed => break,
            }
        }

        drop(driver);
        assert!(String::from_utf8(sender.output)?.starts_with(r#"{"jsonrpc":"2.0","id":1,"#));
        let _ = Duration::ZERO;
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod cobs_and_slip {
    use embedded_io_async::{Read, Write};
    use mcp_sansio_embedded::{Clock, Driver, PacketFraming, packets};
    use mcp_sansio_handlers::Server;
    async fn run(
        server: Server,
        uart_rx: impl Read,
        uart_tx: impl Write,
        clock: impl Clock,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (mut line, mut output) = ([0; 2048], [0; 256]);
        let (uart_rx, uart_tx) = packets(PacketFraming::Cobs, uart_rx, uart_tx);
        let driver =
            Driver::new(server.endpoint(42)?, uart_rx, uart_tx, clock, &mut line, &mut output);
        let _ended = driver.run().await;
        Ok(())
    }
}

mod with_an_executor {
    use embedded_io_async::{Read, Write};
    use mcp_sansio_embedded::{Clock, Driver};
    use mcp_sansio_handlers::Server;
    async fn run(
        server: Server,
        uart_rx: impl Read,
        uart_tx: impl Write,
        clock: impl Clock,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (mut line, mut output) = ([0; 2048], [0; 256]);
        let driver =
            Driver::new(server.endpoint(42)?, uart_rx, uart_tx, clock, &mut line, &mut output);
        if driver.run().await.is_err() {
            // The line is broken.
        }

        Ok(())
    }
}

mod memory {
    use mcp_sansio::peer::{Limits, MessageLengths};

    // The longest line in, and the longest message out.
    const HEAP: usize = Limits::SMALL.server_memory_max(MessageLengths::new(1024, 512));
    const _: () = assert!(HEAP < 112 * 1024);

    fn main() {}

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
