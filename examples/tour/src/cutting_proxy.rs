//! A proxy that simulates a bad network: it forwards bytes and cuts a connection on demand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::stage::Outcome;

/// A proxy between a client and a server.
pub(crate) struct CuttingProxy {
    address: SocketAddr,
    trigger: CutTrigger,
    passing: JoinHandle<()>,
}

/// Cuts the connection after a text has occurred a number of times. Clones share their state.
#[derive(Clone, Default)]
struct CutTrigger(Arc<Mutex<Option<Pattern>>>);

struct Pattern {
    text: &'static str,
    /// The number of occurrences that remain.
    left: usize,
}

impl CuttingProxy {
    /// Starts a proxy that forwards to `server`.
    pub(crate) async fn open(server: SocketAddr) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let trigger = CutTrigger::default();
        let passing = tokio::spawn(forward(listener, server, trigger.clone()));
        Ok(Self { address, trigger, passing })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the connection on which the server sends `text` for the `count`th time, in the middle
    /// of `text`.
    pub(crate) fn arm(&self, text: &'static str, count: usize) {
        *self.trigger.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Pattern { text, left: count });
    }

    /// Whether the connection was cut since the last `arm`.
    pub(crate) fn is_done(&self) -> bool {
        self.trigger.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.passing.abort();
    }
}

impl CutTrigger {
    /// Returns after how many of these bytes to cut, if at all.
    ///
    /// A text that is split over two reads would be missed. The server writes its short events one
    /// at a time, so this does not happen.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let mut pattern = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Pattern { text, left } = pattern.as_mut()?;
        let starts = bytes.windows(text.len()).enumerate();
        for (start, _) in starts.filter(|(_, part)| *part == text.as_bytes()) {
            *left -= 1;
            if *left == 0 {
                *pattern = None;
                return Some(start);
            }
        }
        None
    }
}

async fn forward(listener: TcpListener, server: SocketAddr, trigger: CutTrigger) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(server).await else { return };
        tokio::spawn(connection(client, server, trigger.clone()));
    }
}

/// Forwards in both directions until either side closes or the trigger fires.
async fn connection(client: TcpStream, server: TcpStream, trigger: CutTrigger) {
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => {}
        () = back(from_server, to_client, &trigger) => {}
    }
}

async fn back(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, trigger: &CutTrigger) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = server.read(&mut buffer).await {
        let found = trigger.find(&buffer[..length]);
        let passed = client.write_all(&buffer[..found.unwrap_or(length)]).await;
        if found.is_some() || passed.is_err() {
            return;
        }
    }
}
