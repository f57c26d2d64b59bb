use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};

use mcp_sansio_async::Network;

use crate::PipeStream;
use crate::runtime::ThreadRuntime;

/// A listening socket, to be used within [`block_on`](crate::block_on).
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    #[cfg(unix)]
    descriptor: std::sync::Arc<crate::descriptor::Descriptor>,
}

impl Network for ThreadRuntime {
    type Listener = Listener;
    type Socket = PipeStream;
    type Stream = PipeStream;

    fn listener(socket: TcpListener) -> io::Result<Listener> {
        #[cfg(unix)]
        {
            let descriptor = crate::descriptor::Descriptor::new(socket.try_clone()?.into())?;
            Ok(Listener { socket, descriptor: descriptor.into() })
        }
        #[cfg(not(unix))]
        socket.set_nonblocking(true).map(|()| Listener { socket })
    }

    async fn accept(listener: &Listener) -> io::Result<(PipeStream, SocketAddr)> {
        loop {
            match listener.socket.accept() {
                Ok((socket, address)) => {
                    // On some systems it inherits the mode of the listener.
                    socket.set_nonblocking(false)?;
                    return Ok((socket.try_into()?, address));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => listener.ready().await?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn stream(socket: PipeStream) -> PipeStream {
        socket
    }
}

impl Listener {
    #[cfg(unix)]
    async fn ready(&self) -> io::Result<()> {
        crate::fd_stream::readable(&self.descriptor).await
    }

    /// Waits before the next attempt, since sockets cannot be watched here. 10 ms: not noticeable,
    /// and a hundred attempts a second cost nothing measurable.
    #[cfg(not(unix))]
    async fn ready(&self) -> io::Result<()> {
        use mcp_sansio_async::Timer;

        let (mut clock, soon) =
            (crate::Clock::new(), crate::now() + std::time::Duration::from_millis(10));
        std::future::poll_fn(|cx| clock.poll_until(cx, soon)).await;
        Ok(())
    }
}
