//! An HTTP/2 client that works frame by frame.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::served::Served;
use super::wire::{Post, in_time};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// The header block of a 400 response: an index into the static table.
pub(crate) const STATUS_400: u8 = 0x80 | 12;
/// The header block of a 200 response.
pub(crate) const STATUS_200: u8 = 0x80 | 8;

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) const fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Returns the error code of a GOAWAY frame.
    pub(crate) fn goaway_code(&self) -> u32 {
        assert_eq!(self.kind, GOAWAY, "{self:?}");
        u32::from_be_bytes(self.payload[4..8].try_into().unwrap())
    }
}

/// A client connection.
#[derive(Debug)]
pub(crate) struct Frames {
    read: Reader,
    write: OwnedWriteHalf,
    /// The settings sent by the server.
    pub(crate) settings: Vec<(u16, u32)>,
}

#[derive(Debug)]
struct Reader {
    stream: OwnedReadHalf,
    /// Received bytes that have not been parsed yet.
    read: Vec<u8>,
}

impl Reader {
    /// Returns the next frame, or `None` at the end of the connection. Cancel safe: no bytes are
    /// lost if the future is dropped.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((head, rest)) = self.read.split_first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
                    let (kind, flags) = (head[3], head[4]);
                    let frame = Frame { kind, flags, stream, payload: payload.to_vec() };
                    self.read.drain(..9 + length);
                    return Some(frame);
                }
            }
            if self.stream.read_buf(&mut self.read).await.ok()? == 0 {
                return None;
            }
        }
    }
}

impl Frames {
    /// Connects with the given client settings.
    pub(crate) async fn connect(served: &Served, settings: &[(u16, u32)]) -> Self {
        let stream = in_time(TcpStream::connect(served.address)).await.unwrap();
        let (stream, write) = stream.into_split();
        let read = Reader { stream, read: Vec::new() };
        let mut frames = Self { read, write, settings: Vec::new() };
        frames.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        frames.settings(settings).await;
        let theirs = frames.next_of(SETTINGS).await;
        let pairs = theirs.payload.chunks(6).map(|pair| {
            let (id, value) = pair.split_at(2);
            (
                u16::from_be_bytes(id.try_into().unwrap()),
                u32::from_be_bytes(value.try_into().unwrap()),
            )
        });
        frames.settings = pairs.collect();
        frames.send(SETTINGS, ACK, 0, &[]).await;
        frames
    }

    pub(crate) async fn settings(&mut self, settings: &[(u16, u32)]) {
        let pair =
            |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = settings.iter().flat_map(pair).collect();
        self.send(SETTINGS, 0, 0, &payload).await;
    }

    /// Enlarges the window of a stream, or of the connection for stream 0.
    pub(crate) async fn open_window(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()).await;
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&frame(kind, flags, stream, payload)).await.unwrap();
    }

    /// Writes bytes, until the server stops accepting them.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        in_time(self.write.write_all(bytes)).await
    }

    pub(crate) async fn post(&mut self, stream: u32, post: &Post) {
        self.send(HEADERS, END_HEADERS, stream, &block(&fields(post))).await;
        self.send(DATA, END_STREAM, stream, post.body.as_bytes()).await;
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        in_time(self.read.next()).await
    }

    /// Sends `bytes` repeatedly and reads all frames until the server closes the connection.
    /// Returns the frames.
    pub(crate) async fn flood(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let Self { read, write, .. } = self;
        let mut frames = Vec::new();
        let flood = async { while write.write_all(bytes).await.is_ok() {} };
        let take = async {
            while let Some(frame) = read.next().await {
                frames.push(frame);
            }
        };
        in_time(async { tokio::join!(flood, take) }).await;
        frames
    }

    /// Sends `bytes` repeatedly without reading until the server closes the connection.
    pub(crate) async fn flood_unread(&mut self, bytes: &[u8]) {
        in_time(async { while self.write.write_all(bytes).await.is_ok() {} }).await;
    }

    /// Returns the next frame of a kind.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await.expect("the connection is open");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Returns all remaining frames until the connection closes.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// Returns all frames until a stream ends or is reset.
    pub(crate) async fn until_end_of(&mut self, stream: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.expect("the connection is open");
            if frame.stream != stream {
                continue;
            }
            let is_end = frame.kind == RST_STREAM || frame.ends_stream();
            frames.push(frame);
            if is_end {
                return frames;
            }
        }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns the fields of a request, pseudo-header fields first.
pub(crate) fn fields(post: &Post) -> Vec<(String, String)> {
    let mut fields = vec![
        (":method".to_owned(), "POST".to_owned()),
        (":scheme".into(), "http".into()),
        (":path".into(), "/mcp".into()),
        (":authority".into(), "localhost".into()),
    ];
    let others = post.fields.iter().filter(|(name, _)| *name != "Host");
    fields.extend(others.map(|(name, value)| (name.to_lowercase(), value.clone())));
    fields
}

/// Encodes a header block with each field as a literal without indexing.
pub(crate) fn block(fields: &[(impl AsRef<str>, impl AsRef<str>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name.as_ref(), value.as_ref()] {
            // RFC 7541 section 5.1: an integer with a prefix of 7 bits.
            let mut length = text.len();
            if length < 127 {
                block.push(u8::try_from(length).unwrap());
            } else {
                block.push(127);
                length -= 127;
                while length >= 128 {
                    block.push(u8::try_from(length % 128).unwrap() | 128);
                    length /= 128;
                }
                block.push(u8::try_from(length).unwrap());
            }
            block.extend(text.as_bytes());
        }
    }
    block
}
