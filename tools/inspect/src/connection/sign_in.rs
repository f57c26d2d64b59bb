//! Signing in with a browser.

use std::time::Duration;

use mcp_sansio_handlers::Authorization;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, AuthorizationRequest, ClientMetadata, ClientSecret,
    RegisteredClient,
};
use mcp_sansio_tokio::{FileStore, Loopback, open_in_browser};

use crate::NAME;
use crate::options::SignIn;
use crate::terminal::say;

/// The additional time for a user to sign in.
pub(super) const USER_TIME: Duration = Duration::from_secs(5 * 60);

/// Returns an authorization that lets the user sign in if the server asks for it.
pub(super) async fn authorization(
    sign_in: &SignIn,
) -> Result<Authorization, Box<dyn std::error::Error>> {
    let loopback = Loopback::bind(0).await?.application(NAME).timeout(USER_TIME);
    let options = AuthorizationOptions::code(loopback.redirect_uri())?
        .fallback_redirect_uri(loopback.localhost_redirect_uri())?
        .scopes(&sign_in.scopes)?;
    let options = match &sign_in.client_id {
        Some(client_id) => {
            options.registered(RegisteredClient::new(client_id, ClientSecret::None))?
        }
        None => options.register_as(ClientMetadata::new(NAME, ApplicationType::Native)),
    };
    let authorization =
        Authorization::new(options).on_authorize(move |request: AuthorizationRequest| {
            let issuer = request.issuer.clone();
            loopback.authorize(request, move |url| open(&issuer, url))
        });
    Ok(match &sign_in.store {
        Some(path) => authorization.store(FileStore::new(path).on_failure(|error| {
            say(&format!("{NAME}: note: {error}"));
        })),
        None => authorization,
    })
}

fn open(issuer: &str, url: &str) {
    say(&format!("{NAME}: to sign in at {issuer}, open {url}"));
    // Without a browser, the user can open the printed URL.
    let _ = open_in_browser(url);
}
