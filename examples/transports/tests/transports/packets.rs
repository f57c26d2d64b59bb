use std::future::poll_fn;

use mcp_sansio::framing::PacketFraming;
use mcp_sansio_test::transport::{Promises, check};
use mcp_sansio_tokio::adapter::ByteStream;
use tokio::io::AsyncWriteExt;
use transports::packets::PacketStream;

use crate::tokio_ends::TokioEnds;

const LENGTH_MAX: usize = 64 * 1024;

const FRAMINGS: [PacketFraming; 2] = [PacketFraming::Cobs, PacketFraming::Slip];

#[test]
fn cobs_and_slip_conform_on_a_line() {
    for framing in FRAMINGS {
        let promises = Promises::messages(LENGTH_MAX);
        let report = check(&mut TokioEnds::new(promises, async move || {
            // A line with the buffer of a small device.
            let (near, far) = tokio::io::duplex(256);
            let stream = |line| PacketStream::new(framing, line, LENGTH_MAX);
            (stream(near), stream(far))
        }));
        println!("{framing:?}: {report}");
    }
}

#[tokio::test]
async fn a_damaged_packet_breaks_the_connection() {
    for framing in FRAMINGS {
        let (mut near, far) = tokio::io::duplex(256);
        let delimiter = if framing == PacketFraming::Slip { 0xc0 } else { 0 };
        near.write_all(&[5, b'n', b'o', b'i', b's', delimiter]).await.unwrap();
        let mut stream = PacketStream::new(framing, far, LENGTH_MAX);
        let mut buffer = [0; 64];
        let error = poll_fn(|cx| stream.poll_read(cx, &mut buffer)).await.unwrap_err();
        assert_eq!(error.to_string(), "a packet is damaged");
    }
}
