use std::task::Waker;

use mcp_sansio::Instant;

use super::*;
use crate::runtime::ManualClock;

/// A stream with some readable data, and then nothing more for now.
struct Arrived(&'static [u8]);

impl Read for Arrived {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.0.split_at(self.0.len().min(space.remaining()));
        if now.is_empty() {
            return Poll::Pending;
        }
        space.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

fn reads(stream: Arrived, begun: &[u8], space: usize) -> Vec<Vec<u8>> {
    let mut socket =
        Socket::new(stream, ManualClock::default(), Duration::ZERO).with_prefix(begun.to_vec());
    let mut cx = Context::from_waker(Waker::noop());
    let mut reads = Vec::new();
    loop {
        let mut space = vec![0; space];
        let mut space = ReadBuf::new(&mut space);
        match Pin::new(&mut socket).poll_read(&mut cx, space.unfilled()) {
            Poll::Ready(read) => read.unwrap(),
            Poll::Pending => return reads,
        }
        reads.push(space.filled().to_vec());
    }
}

#[test]
fn prefix_bytes_are_read_before_the_stream() {
    assert_eq!(reads(Arrived(b" /mcp"), b"POST", 16), [b"POST /mcp"]);
    assert_eq!(reads(Arrived(b""), b"POST", 16), [b"POST"]);
    assert_eq!(reads(Arrived(b" /mcp"), b"", 16), [b" /mcp"]);
    assert_eq!(reads(Arrived(b" /mcp"), b"POST", 3), [&b"POS"[..], b"T /", b"mcp"]);
    assert_eq!(reads(Arrived(b" /mcp"), b"POST", 4), [&b"POST"[..], b" /mc", b"p"]);
}

/// A client that reads a number of bytes, and then nothing more for now.
#[derive(Debug, Default)]
struct Taking(usize);

impl Read for Taking {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl Write for Taking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match std::mem::take(&mut self.0).min(bytes.len()) {
            0 => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Writes to a client that reads `bytes` every second until writing fails. Returns the seconds
/// until then, if it fails within an hour. Data counts as flushed after every `flushes` bytes.
fn fails_after(bytes: usize, flushes: usize) -> Option<u64> {
    let clock = ManualClock::default();
    let mut socket = Socket::new(Taking::default(), clock.clone(), Duration::from_secs(30));
    let mut cx = Context::from_waker(Waker::noop());
    let (space, mut written) = (vec![0; 1 << 20], 0);
    for second in 0..3600 {
        clock.set(Instant::from_millis(second * 1000));
        socket.stream.0 = bytes;
        while let Poll::Ready(result) = Pin::new(&mut socket).poll_write(&mut cx, &space) {
            let Ok(count) = result else { return Some(second) };
            written += count;
            if written >= flushes {
                written = 0;
                assert!(Pin::new(&mut socket).poll_flush(&mut cx).is_ready());
            }
        }
    }
    None
}

#[test]
fn a_write_fails_unless_16_kib_or_everything_is_taken_in_time() {
    let endless = usize::MAX;
    assert_eq!(fails_after(0, endless), Some(30));
    assert_eq!(fails_after(1, endless), Some(30));
    assert_eq!(fails_after(500, endless), Some(30));
    assert_eq!(fails_after(600, endless), None);
    assert_eq!(fails_after(1 << 20, endless), None);
    // A slow client is not late with little data.
    assert_eq!(fails_after(1, 20), None);
    assert_eq!(fails_after(1, 40), Some(30));
}
