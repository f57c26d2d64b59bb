use std::io::{self, ErrorKind};

use mcp_sansio_async::{ListenerSocket, Network, PeerAddress};

use crate::PipeStream;
use crate::runtime::ThreadRuntime;

/// A listening socket, to be used within [`block_on`](crate::block_on).
#[derive(Debug)]
pub struct Listener {
    socket: ListenerSocket,
    #[cfg(unix)]
    descriptor: std::sync::Arc<crate::descriptor::Descriptor>,
}

impl Network for ThreadRuntime {
    type Listener = Listener;
    type Socket = PipeStream;

    fn listener(socket: ListenerSocket) -> io::Result<Listener> {
        #[cfg(unix)]
        {
            let duplicate = match &socket {
                ListenerSocket::Tcp(socket) => socket.try_clone()?.into(),
                ListenerSocket::Unix(socket) => socket.try_clone()?.into(),
            };
            let descriptor = crate::descriptor::Descriptor::new(duplicate)?;
            Ok(Listener { socket, descriptor: descriptor.into() })
        }
        #[cfg(not(unix))]
        {
            let ListenerSocket::Tcp(tcp) = &socket;
            tcp.set_nonblocking(true)?;
            Ok(Listener { socket })
        }
    }

    async fn accept(listener: &Listener) -> io::Result<(PipeStream, PeerAddress)> {
        loop {
            match accept(&listener.socket) {
                Ok(accepted) => return Ok(accepted),
                Err(error) if error.kind() == ErrorKind::WouldBlock => listener.ready().await?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

// On some systems the socket inherits the mode of the listener.
fn accept(listener: &ListenerSocket) -> io::Result<(PipeStream, PeerAddress)> {
    match listener {
        ListenerSocket::Tcp(listener) => {
            let (socket, address) = listener.accept()?;
            socket.set_nonblocking(false)?;
            Ok((socket.try_into()?, PeerAddress::Tcp(address)))
        }
        #[cfg(unix)]
        ListenerSocket::Unix(listener) => {
            let (socket, _) = listener.accept()?;
            socket.set_nonblocking(false)?;
            let peer = PeerAddress::of_unix(&socket);
            Ok((socket.try_into()?, peer))
        }
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
