//! The sockets and the executor of async-std.

use std::io;
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use async_io::Async;

use crate::SocketStream;
use crate::runtime::{Executor, Task};

/// The executor of async-std.
#[derive(Debug)]
pub(crate) struct AsyncStd;

impl Executor for AsyncStd {
    fn is_current(&self) -> bool {
        async_std::task::try_current().is_some()
    }

    fn spawn(&self, task: Task) {
        drop(async_std::task::spawn(task));
    }
}

impl TryFrom<async_std::net::TcpStream> for SocketStream<TcpStream> {
    type Error = io::Error;

    /// Fails while there are clones of the socket, or if the system is out of resources.
    fn try_from(socket: async_std::net::TcpStream) -> io::Result<Self> {
        Ok(Async::new(TcpStream::try_from(socket)?)?.into())
    }
}

#[cfg(unix)]
impl TryFrom<async_std::os::unix::net::UnixStream> for SocketStream<UnixStream> {
    type Error = io::Error;

    /// Fails while there are clones of the socket, or if the system is out of resources.
    fn try_from(socket: async_std::os::unix::net::UnixStream) -> io::Result<Self> {
        Ok(Async::new(UnixStream::try_from(socket)?)?.into())
    }
}

#[cfg(feature = "http-server")]
impl crate::IntoHttpListener for async_std::net::TcpListener {
    fn into_http_listener(self) -> io::Result<crate::HttpListener> {
        std::net::TcpListener::try_from(self)?.try_into()
    }
}
