//! Layers of `tower` around handlers and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio_tokio as mcp;

use mcp::jsonrpc::Json;
use mcp::middleware::Calls;
use mcp::tower::{HandlerFailure, Request, around};
use mcp::{Call, ClientError, HandlerError, Host, NoArguments, Server};
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower::util::MapRequestLayer;
use tower::{Layer, Service, ServiceBuilder};

const SECOND: Duration = Duration::from_secs(1);

fn waiting() -> Server {
    Server::new("s", "1").tool("wait", "", async |_: Call<NoArguments>| {
        tokio::time::sleep(5 * SECOND).await;
        "done"
    })
}

fn connect(server: &Server, host: &Host) -> mcp::Client {
    let (client, pair) = mcp_sansio_test::connect(server, host);
    tokio::spawn(pair.drive());
    client
}

fn host() -> Host {
    Host::new("host", "1")
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_tower_ends_a_handler() {
    let layer = around(TimeoutLayer::new(SECOND));
    let client = connect(&waiting().middleware(layer), &host());
    let result = client.call_tool("wait", &NoArguments {}).await.unwrap();
    assert_eq!((result.is_error, result.first_text()), (Some(true), Some("request timed out")));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_layer_is_that_of_all_requests() {
    let layers = ServiceBuilder::new()
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .into_inner();
    let client = connect(&waiting().middleware(around(layers)), &host());
    let call = || client.call_tool("wait", &NoArguments {}).into_future();
    let (first, second) = tokio::join!(call(), call());
    assert_eq!(first.unwrap().first_text(), Some("done"));
    assert_eq!(second.unwrap().is_error, Some(true));
    assert_eq!(call().await.unwrap().first_text(), Some("done"));
}

#[tokio::test]
async fn the_error_of_a_handler_is_kept_and_can_be_inspected() {
    #[derive(Clone)]
    struct Look<S>(S, Arc<AtomicUsize>);

    impl<S, R> Service<R> for Look<S>
    where
        S: Service<R, Error = mcp::tower::BoxError>,
        S::Future: Send + 'static,
    {
        type Response = S::Response;
        type Error = S::Error;
        type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: R) -> Self::Future {
            let (running, count) = (self.0.call(request), Arc::clone(&self.1));
            Box::pin(async move {
                let result = running.await;
                let error = result.as_ref().err();
                if error.is_some_and(|error| error.is::<HandlerFailure>()) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                result
            })
        }
    }

    #[derive(Clone)]
    struct LookLayer(Arc<AtomicUsize>);

    impl<S> Layer<S> for LookLayer {
        type Service = Look<S>;

        fn layer(&self, inner: S) -> Look<S> {
            Look(inner, Arc::clone(&self.0))
        }
    }

    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::new("s", "1").middleware(around(LookLayer(Arc::clone(&count)))).tool(
        "fail",
        "",
        |_: Call<NoArguments>| Err::<String, _>(HandlerError::invalid_params("no")),
    );
    let client = connect(&server, &host());
    let error = client.call_tool("fail", &NoArguments {}).await.unwrap_err();
    assert_eq!(error.as_refusal().unwrap().message, "no");
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn layers_of_tower_change_and_repeat_calls() {
    /// Repeats calls that timed out at the server, once.
    #[derive(Clone)]
    struct Again(usize);

    impl Policy<Request<Calls>, Json, mcp::tower::BoxError> for Again {
        type Future = std::future::Ready<()>;

        fn retry(
            &mut self,
            _: &mut Request<Calls>,
            result: &mut Result<Json, mcp::tower::BoxError>,
        ) -> Option<Self::Future> {
            let error = result.as_ref().err()?.downcast_ref::<ClientError>()?;
            let is_timeout = matches!(error, ClientError::TimedOut { .. });
            self.0 = self.0.checked_sub(usize::from(is_timeout))?;
            is_timeout.then(|| std::future::ready(()))
        }

        fn clone_request(&mut self, request: &Request<Calls>) -> Option<Request<Calls>> {
            Some(request.clone())
        }
    }

    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let server = Server::new("s", "1").tool("wait", "", async move |_: Call<NoArguments>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
        "never"
    });
    let hurry = |mut call: Request<Calls>| {
        call.request.set_timeout_hard(SECOND);
        call
    };
    let layers = ServiceBuilder::new()
        .layer(RetryLayer::new(Again(1)))
        .layer(MapRequestLayer::new(hurry))
        .into_inner();
    let host = host().call_middleware(around(layers));
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    let error = pair.run(client.call_tool("wait", &NoArguments {})).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { hard: true, .. }), "{error:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_tower_ends_a_call() {
    let layer = around(TimeoutLayer::new(SECOND));
    let client = connect(&waiting(), &host().call_middleware(layer));
    let error = client.call_tool("wait", &NoArguments {}).await.unwrap_err();
    let ClientError::Middleware(error) = error else { panic!("{error:?}") };
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error:?}");
}
