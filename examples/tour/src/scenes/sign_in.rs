//! Scenes over HTTP with a server that requires authorization.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use authorization_server::browser::Browser;
use authorization_server::protected;
use mcp_sansio_tokio::auth::client::{
    ActionFailure, ApplicationType, AuthorizationEvent, AuthorizationOptions, AuthorizationRequest,
    ClientMetadata,
};
use mcp_sansio_tokio::{Authorization, Server};
use mcp_sansio_tokio::{Connector, Proxy};
use serde_json::json;

use super::{host, text};
use crate::http_server::HttpServer;
use crate::stage::{Outcome, PAUSE, Stage, options};

/// The lifetime of an access token. Real servers use minutes.
const ACCESS: Duration = Duration::from_secs(2);

/// The events of the authorization, described in a few words.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn note(&self, event: &AuthorizationEvent) {
        if let AuthorizationEvent::Authorized { scope, .. } = event {
            let event = format!("a token for {}", scope.as_deref().unwrap_or("anything"));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).join(", ")
    }
}

pub(super) async fn play(stage: &Stage, server: &Server) -> Outcome {
    stage.title(
        "11. A server that requires a token: a first one, one with more scopes, a refreshed one",
    );
    let options_of_tokens = protected::options().access_token_lifetime(ACCESS);
    let authorization_server = protected::authorization_server(options_of_tokens).await?;
    let protect =
        |url: &str| protected::protect(server.clone(), url, authorization_server.issuer(), "book");
    let http_server = HttpServer::open_with(protect, PAUSE).await?;
    let events = Events::default();
    let noting = events.clone();
    let authorization = authorization()?.observe(move |event| noting.note(event));
    let host = host().authorization(authorization);
    let visit = stage.visit(options(&http_server.url("/mcp"))?.listen(false), &host)?;
    visit.client.opened().await?;
    stage.say(&format!("the user signs in: {}", events.take()));
    stage.list(visit.trace.exchanges());

    visit.trace.clear();
    let result = visit.client.call_tool("book", &json!({ "guests": 4 })).await?;
    stage.say(&format!("the user grants another scope: {}   {}", events.take(), text(&result)));
    stage.list(visit.trace.exchanges());

    tokio::time::sleep(ACCESS).await;
    visit.trace.clear();
    let result = visit.client.call_tool("forecast", &json!({ "location": "Oslo" })).await?;
    stage.say(&format!(
        "the token has expired and is refreshed without the user   {}",
        text(&result)
    ));
    stage.list(visit.trace.exchanges());
    visit.leave().await;
    http_server.close().await?;
    let tally = authorization_server.tally();
    // On a busy machine, a token may expire once more in the meantime.
    if tally.authorizations == 2 && tally.refreshes >= 1 {
        Ok(())
    } else {
        Err(format!("expected two sign-ins and a renewal, got {tally:?}").into())
    }
}

/// This program also acts as the browser.
fn authorization() -> Outcome<Authorization> {
    let options = AuthorizationOptions::code("http://127.0.0.1:8910/callback")?
        .register_as(ClientMetadata::new("tour", ApplicationType::Native));
    let browser = Browser::new(Connector::builder().proxy(Proxy::none()).build()?);
    Ok(Authorization::new(options).on_authorize(move |request: AuthorizationRequest| {
        let browser = browser.clone();
        async move {
            let redirect = browser.visit(&request.url).await;
            redirect.map_err(|error| ActionFailure::Failed(error.to_string()))
        }
    }))
}
