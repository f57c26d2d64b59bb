use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use mcp_sansio::http::DOCUMENT_LENGTH_MAX;

use super::exchanger::poll_piece;
use super::{Connect, ConnectorError};
use crate::Timer;

/// Time limit for fetching a document, from the first lookup to the last byte. 20 s: twice the
/// connection timeout, so that a connection that times out reports that as its error.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(20);

/// Why a document could not be fetched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No response arrived, or an incomplete one.
    #[error(transparent)]
    Exchange(#[from] ConnectorError),
    /// The server answered with another status, including redirects.
    #[error("the server answers with HTTP status {status}")]
    Status {
        /// Any status other than 200.
        status: u16,
    },
    /// The document is longer than [`DOCUMENT_LENGTH_MAX`].
    #[error("the document is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// The document did not arrive within [`FETCH_TIME_MAX`].
    #[error("the document did not arrive within {FETCH_TIME_MAX:?}")]
    Timeout,
}

/// Fetches a document: the body of a response with status 200. Redirects are not followed.
///
/// # Errors
///
/// See [`FetchError`].
pub async fn fetch(
    connector: impl Connect,
    url: String,
    mut timer: impl Timer,
) -> Result<Vec<u8>, FetchError> {
    let deadline = timer.now() + FETCH_TIME_MAX;
    let mut document = pin!(document(connector, url));
    poll_fn(|cx| match document.as_mut().poll(cx) {
        Poll::Ready(document) => Poll::Ready(document),
        Poll::Pending => timer.poll_until(cx, deadline).map(|()| Err(FetchError::Timeout)),
    })
    .await
}

async fn document(connector: impl Connect, url: String) -> Result<Vec<u8>, FetchError> {
    let request = Request::get(url).body(Bytes::new());
    let request = request.map_err(|e| ConnectorError::Request { reason: e.to_string() })?;
    let response = connector.send(request).await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status { status: response.status().as_u16() });
    }
    let (mut body, mut document) = (response.into_body(), Vec::new());
    while let Some(piece) = poll_fn(|cx| poll_piece(&mut body, cx)).await {
        let piece = piece?;
        if piece.len() > DOCUMENT_LENGTH_MAX - document.len() {
            return Err(FetchError::TooLong);
        }
        document.extend_from_slice(&piece);
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::{Context, Waker};

    use http::Response;
    use mcp_sansio::Instant;

    use super::super::{EraCache, ResponseBody};
    use super::*;
    use crate::Runtime;

    /// Never responds.
    #[derive(Clone)]
    struct Silent;

    impl Connect for Silent {
        type Runtime = NoRuntime;
        type Body = ResponseBody;

        fn era_cache(&self) -> &EraCache {
            unreachable!("nothing is learned")
        }

        fn send(
            &self,
            _: Request<Bytes>,
        ) -> impl Future<Output = Result<Response<ResponseBody>, ConnectorError>> + Send + 'static
        {
            pending()
        }
    }

    #[derive(Clone, Debug)]
    struct NoRuntime;

    impl Runtime for NoRuntime {
        type Timer = &'static mut Alarm;

        fn current() -> Self {
            Self
        }

        fn timer(&self) -> &'static mut Alarm {
            unreachable!("nothing waits")
        }

        fn spawn<F: Future<Output = ()> + Send + 'static>(&self, _: F) {
            unreachable!("nothing is spawned")
        }
    }

    /// Records its deadline, and goes off at the second poll.
    #[derive(Default)]
    struct Alarm(Option<Instant>);

    impl Timer for &mut Alarm {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
            match self.0.replace(deadline) {
                None => Poll::Pending,
                Some(_) => Poll::Ready(()),
            }
        }
    }

    #[test]
    fn a_document_fetch_times_out() {
        let mut alarm = Alarm::default();
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut fetch = pin!(fetch(Silent, "http://localhost/".into(), &mut alarm));
            assert!(fetch.as_mut().poll(&mut cx).is_pending());
            let Poll::Ready(Err(FetchError::Timeout)) = fetch.poll(&mut cx) else {
                panic!("the fetch did not end")
            };
        }
        assert_eq!(alarm.0, Some(Instant::ZERO + FETCH_TIME_MAX));
    }

    #[test]
    fn an_invalid_url_is_reported() {
        let mut alarm = Alarm::default();
        let mut cx = Context::from_waker(Waker::noop());
        let fetch = pin!(fetch(Silent, "no url at all".into(), &mut alarm));
        let Poll::Ready(Err(FetchError::Exchange(ConnectorError::Request { reason }))) =
            fetch.poll(&mut cx)
        else {
            panic!("the request was sent")
        };
        assert_eq!(reason, "invalid uri character");
    }
}
