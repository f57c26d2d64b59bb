use std::sync::Arc;
use std::time::Duration;

use mcp_sansio_tokio::peer::{Failure, Timeouts, TransportFailure};
use mcp_sansio_tokio::{ClientError, ConnectError, ConnectorError, Error, connect};
use tokio::sync::Notify;

use super::scripts::{host, modern, said};
use super::server::{Action, Server, answer, respond};
use super::{closed_port, within};

/// Tries to connect and returns the error.
async fn refused(url: &str, timeouts: Timeouts) -> ConnectError {
    match within(connect(url, &host().timeouts(timeouts))).await {
        Err(Error::Connect(error)) => *error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the connection succeeded"),
    }
}

#[tokio::test]
async fn a_refused_connection_fails_fast() {
    let (_held, address) = closed_port();
    let url = format!("http://{address}/mcp?key=secret");
    let error = refused(&url, Timeouts::default()).await;
    let said = error.to_string();
    assert!(said.contains("cannot be reached") && !said.contains("secret"), "{said}");
    let ConnectError::Unreachable { cause: ConnectorError::Connect { cause, .. }, .. } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let server = Server::start(|_, _| vec![Action::Wait(Arc::new(Notify::new()))]).await;
    let mut timeouts = Timeouts::default();
    timeouts.probe = Duration::from_millis(50);
    timeouts.opening = Duration::from_millis(100);
    let error = refused(&server.url(), timeouts).await;
    assert!(matches!(error, ConnectError::Silent { .. }), "{error:?}");
    // Rule: [VER-022]: a timeout over HTTP says nothing about the era.
    assert_eq!(server.lines(), ["POST - server/discover"]);
}

#[tokio::test]
async fn an_unanswered_call_times_out_and_is_aborted() {
    let gone = Arc::new(Notify::new());
    let goes = Arc::clone(&gone);
    let server =
        Server::start(move |asked, _| modern(asked, |_| vec![Action::Held(Arc::clone(&goes))]))
            .await;
    within(async {
        let client = connect(&server.url(), &host()).await.unwrap();
        let arguments = std::collections::BTreeMap::<String, String>::new();
        let call = client.call_tool("slow", &arguments).timeout(Duration::from_millis(50));
        let error = call.await.unwrap_err();
        assert!(matches!(error, ClientError::TimedOut { hard: false, .. }));
        gone.notified().await;
    })
    .await;
}

#[tokio::test]
async fn a_call_whose_connection_breaks_says_so_and_the_next_one_succeeds() {
    let server = Server::start(|asked, _| {
        modern(asked, |asked| {
            if asked.body.contains("fatal") {
                vec![Action::Close]
            } else {
                answer(asked, "", &said("ok"))
            }
        })
    })
    .await;
    within(async {
        let client = connect(&server.url(), &host()).await.unwrap();
        let arguments = std::collections::BTreeMap::<String, String>::new();
        let error = client.call_tool("fatal", &arguments).await.unwrap_err();
        let broken = Failure::Transport(TransportFailure::Broken);
        assert!(matches!(&error, ClientError::Failed(failure) if *failure == broken), "{error}");
        let cause = client.last_failure();
        assert!(matches!(cause, Some(ConnectorError::Lost { sent: true, .. })), "{cause:?}");
        client.call_tool("harmless", &arguments).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn each_kind_of_rejection_has_its_own_error() {
    let challenge = "www-authenticate: Bearer resource_metadata=\"https://a.test/\"\r\n";
    let server = Server::start(move |_, _| respond(401, challenge, "")).await;
    let error = refused(&server.url(), Timeouts::default()).await;
    let ConnectError::Unauthorized { status: 401, challenge, .. } = error else {
        panic!("{error:?}");
    };
    assert!(challenge.unwrap().starts_with("Bearer "));

    let server = Server::start(|_, _| respond(404, "", "")).await;
    let error = refused(&server.url(), Timeouts::default()).await;
    assert!(matches!(error, ConnectError::NotFound { status: 404, .. }), "{error:?}");

    let server = Server::start(|_, _| respond(503, "", "")).await;
    let error = refused(&server.url(), Timeouts::default()).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("503"), "{error}");
}

#[tokio::test]
async fn an_invalid_url_is_refused_without_echoing_it() {
    let error = refused("ftp://ada:secret@example.com", Timeouts::default()).await;
    assert!(matches!(error, ConnectError::Url(_)), "{error:?}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
