use std::net::{Shutdown, TcpStream};

use async_io::Async;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use mcp_sansio_auth::loopback::{
    CONNECTION_TIME, REQUEST_LENGTH_MAX, RedirectAddress, Reply, Request,
};

use crate::timer::timeout;

/// A connection whose request is a redirect, and its target.
#[derive(Debug)]
pub(super) struct Redirected {
    pub(super) stream: Async<TcpStream>,
    pub(super) target: String,
}

/// Reads the request of a connection, and refuses it unless it is a redirect.
pub(super) async fn serve(
    mut stream: Async<TcpStream>,
    address: &RedirectAddress,
    application: &str,
) -> Option<Redirected> {
    let read = async {
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let room = piece.len().min(REQUEST_LENGTH_MAX - request.len());
            // The end of a connection, or its failure, concerns nobody else.
            let count = stream.read(&mut piece[..room]).await.ok()?;
            request.extend_from_slice(&piece[..count]);
            match address.read(&request) {
                Request::Incomplete if count == 0 => return None,
                Request::Incomplete => {}
                Request::Redirect(target) => return Some(Ok(target.to_owned())),
                Request::Refused(reply) => return Some(Err(reply)),
            }
        }
    };
    match timeout(CONNECTION_TIME, read).await?? {
        Ok(target) => Some(Redirected { stream, target }),
        Err(refusal) => {
            reply(stream, refusal, application).await;
            None
        }
    }
}

/// Answers the request of a connection and closes it.
pub(super) async fn reply(mut stream: Async<TcpStream>, reply: Reply, application: &str) {
    let response = reply.response(application);
    let written = async {
        stream.write_all(&response).await?;
        stream.get_ref().shutdown(Shutdown::Write)
    };
    // Nobody is left to be told.
    let _ = timeout(CONNECTION_TIME, written).await;
}
