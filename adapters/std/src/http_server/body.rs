use std::sync::atomic::{AtomicUsize, Ordering};

use httparse::Status;
use mcp_sansio::http::server::Admission;

use super::request::Framing;
use super::socket::Socket;

/// The longest line with the size of a chunk, extensions included, in bytes.
const SIZE_LINE_MAX: usize = 1024;
/// The longest trailers, in bytes. Nobody reads them.
const TRAILERS_MAX: usize = 8 * 1024;

/// A body that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// There is more of it than there may be.
    TooLong,
    /// All bodies together are more than there may be.
    TooMany,
    /// It breaks off, or its chunks are none.
    Broken,
}

/// The bytes of all bodies that are held.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicUsize);

/// A body, and its part of what is held.
#[derive(Debug)]
pub(super) struct HeldBody<'h> {
    pub(super) bytes: Vec<u8>,
    held: &'h Held,
    admission: Admission,
}

impl HeldBody<'_> {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Unusable> {
        self.bytes.extend_from_slice(bytes);
        let before = self.held.0.fetch_add(bytes.len(), Ordering::Relaxed);
        if self.bytes.len() > self.admission.body_bytes_max {
            return Err(Unusable::TooLong);
        }
        if before.saturating_add(bytes.len()) > self.admission.bodies_bytes_max {
            return Err(Unusable::TooMany);
        }
        Ok(())
    }
}

impl Drop for HeldBody<'_> {
    fn drop(&mut self) {
        self.held.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// Reads a body, as far as it may go.
pub(super) async fn read<'h>(
    socket: &mut Socket,
    framing: Framing,
    admission: Admission,
    held: &'h Held,
) -> Result<HeldBody<'h>, Unusable> {
    let mut body = HeldBody { bytes: Vec::new(), held, admission };
    match framing {
        Framing::Length(length) => {
            if length > admission.body_bytes_max as u64 {
                return Err(Unusable::TooLong);
            }
            read_piece(socket, length, &mut body).await?;
        }
        Framing::Chunked => loop {
            let size = read_size(socket).await?;
            if size == 0 {
                read_trailers(socket).await?;
                break;
            }
            if size > admission.body_bytes_max.saturating_sub(body.bytes.len()) as u64 {
                return Err(Unusable::TooLong);
            }
            read_piece(socket, size, &mut body).await?;
            if read_line(socket, 2).await? != 2 {
                return Err(Unusable::Broken);
            }
        },
    }
    Ok(body)
}

async fn read_piece(
    socket: &mut Socket,
    mut left: u64,
    body: &mut HeldBody<'_>,
) -> Result<(), Unusable> {
    while left > 0 {
        if socket.input().is_empty() {
            more(socket).await?;
        }
        let there = socket.input().len();
        let count = usize::try_from(left).map_or(there, |left| left.min(there));
        body.add(&socket.input()[..count])?;
        socket.skip(count);
        left -= count as u64;
    }
    Ok(())
}

/// Reads the line before a chunk.
async fn read_size(socket: &mut Socket) -> Result<u64, Unusable> {
    loop {
        match httparse::parse_chunk_size(socket.input()) {
            Ok(Status::Complete((length, size))) => {
                // A line end that others could see, and this did not, ends in a refusal.
                let line = &socket.input()[..length - 2];
                if line.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                    return Err(Unusable::Broken);
                }
                socket.skip(length);
                return Ok(size);
            }
            Ok(Status::Partial) if socket.input().len() <= SIZE_LINE_MAX => more(socket).await?,
            Ok(Status::Partial) | Err(_) => return Err(Unusable::Broken),
        }
    }
}

async fn read_trailers(socket: &mut Socket) -> Result<(), Unusable> {
    let mut left = TRAILERS_MAX;
    loop {
        let length = read_line(socket, left).await?;
        if length == 2 {
            return Ok(());
        }
        left -= length;
    }
}

/// Reads a line of at most `most` bytes, and returns its length with its end.
async fn read_line(socket: &mut Socket, most: usize) -> Result<usize, Unusable> {
    let mut seen = 0;
    loop {
        let input = socket.input();
        if let Some(place) = input[seen..].iter().position(|byte| *byte == b'\n') {
            let length = seen + place + 1;
            if length < 2 || input[length - 2] != b'\r' || length > most {
                return Err(Unusable::Broken);
            }
            socket.skip(length);
            return Ok(length);
        }
        seen = input.len();
        if seen >= most {
            return Err(Unusable::Broken);
        }
        more(socket).await?;
    }
}

async fn more(socket: &mut Socket) -> Result<(), Unusable> {
    socket.fill().await.map_err(|_| Unusable::Broken)
}
