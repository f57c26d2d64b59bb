use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use mcp_sansio::Instant;
use mcp_sansio_auth::loopback::{
    CONNECTION_TIME, REQUEST_LENGTH_MAX, RedirectAddress, Reply, Request,
};

/// A connection whose request has not come in full.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    end: Instant,
}

/// What has become of a connection.
pub(super) enum Progress {
    /// More of its request is to come.
    Waits,
    /// It has ended, or its time is over.
    Over,
    /// Its request is not a redirect.
    Refused(Reply),
    /// Its request is a redirect with this target.
    Redirected(String),
}

impl Connection {
    /// `None` if it has ended already.
    pub(super) fn new(stream: TcpStream, now: Instant) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, request: Vec::new(), end: now + CONNECTION_TIME })
    }

    /// When its time is over.
    pub(super) const fn end(&self) -> Instant {
        self.end
    }

    #[cfg(unix)]
    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what has come.
    pub(super) fn go_on(&mut self, address: &RedirectAddress, now: Instant) -> Progress {
        let mut piece = [0; 4096];
        loop {
            let room = piece.len().min(REQUEST_LENGTH_MAX - self.request.len());
            match self.stream.read(&mut piece[..room]) {
                Ok(0) => return Progress::Over,
                Ok(count) => self.request.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && now < self.end => {
                    return Progress::Waits;
                }
                Err(_) => return Progress::Over,
            }
            match address.read(&self.request) {
                Request::Incomplete => {}
                Request::Redirect(target) => return Progress::Redirected(target.to_owned()),
                Request::Refused(reply) => return Progress::Refused(reply),
            }
        }
    }

    /// Answers its request. A response is shorter than what a socket takes without waiting.
    pub(super) fn reply(&mut self, reply: Reply, application: &str) {
        let response = reply.response(application);
        // Nobody is left to be told.
        let _ =
            self.stream.write_all(&response).and_then(|()| self.stream.shutdown(Shutdown::Write));
    }
}
