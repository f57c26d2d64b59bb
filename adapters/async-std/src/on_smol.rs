//! The sockets and the executor of smol.

use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use async_io::Async;

use crate::SocketStream;
use crate::runtime::{Executor, Task};

/// The global executor of smol.
#[derive(Debug)]
pub(crate) struct Smol;

impl Executor for Smol {
    /// It does not say.
    fn is_current(&self) -> bool {
        false
    }

    fn spawn(&self, task: Task) {
        smol::spawn(task).detach();
    }
}

impl From<smol::net::TcpStream> for SocketStream<TcpStream> {
    /// Like the conversion of a shared socket.
    fn from(socket: smol::net::TcpStream) -> Self {
        Arc::<Async<TcpStream>>::from(socket).into()
    }
}

#[cfg(unix)]
impl From<smol::net::unix::UnixStream> for SocketStream<UnixStream> {
    /// Like the conversion of a shared socket.
    fn from(socket: smol::net::unix::UnixStream) -> Self {
        Arc::<Async<UnixStream>>::from(socket).into()
    }
}

#[cfg(feature = "http-server")]
impl crate::IntoHttpListener for smol::net::TcpListener {
    fn into_http_listener(self) -> std::io::Result<crate::HttpListener> {
        Ok(crate::HttpListener::new(self))
    }
}
