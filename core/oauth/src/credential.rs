//! What is kept of an authorization between runs of an application.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::client::{ClientSecret, Credential};
use super::client_authentication::AuthenticationMethod;
use super::token::{TokenType, is_token};

/// What the forms are known by. What changes in one of them needs another name: nobody knows how old
/// what was kept is.
const TOKENS_FORM: &str = "mcp-sansio tokens 1";
const CLIENT_FORM: &str = "mcp-sansio client 1";
const ISSUER_FORM: &str = "mcp-sansio issuer 1";

/// What is kept for an MCP server. There is no password of the client in it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredTokens {
    /// Whose tokens these are.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-039]
    pub(super) issuer: String,
    /// Where they are renewed.
    pub(super) token_endpoint: String,
    /// What the client is known as there.
    pub(super) client_id: String,
    /// How it authenticates there.
    pub(super) method: AuthenticationMethod,
    /// What the tokens are for.
    pub(super) resource: String,
    /// The token.
    pub(super) access_token: String,
    /// How it is presented.
    pub(super) token_type: TokenType,
    /// What it is renewed with.
    pub(super) refresh_token: Option<String>,
    /// When it expires, in seconds since 1970, where that is known.
    pub(super) expires_at: Option<u64>,
    /// The scopes that were asked for, separated by spaces.
    pub(super) requested: String,
    /// The scopes that were granted, separated by spaces.
    pub(super) granted: String,
    /// The thumbprint of the key that they are bound to.
    pub(super) thumbprint: Option<String>,
}

/// What an authorization server knows a client as that registered itself there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredClient {
    /// The authorization server.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
    pub(super) issuer: String,
    /// What it knows the client as.
    pub(super) client_id: String,
    /// The password.
    pub(super) client_secret: Option<String>,
    /// When the password expires, in seconds since 1970; `None`: never.
    pub(super) secret_expires_at: Option<u64>,
    /// How it authenticates.
    pub(super) method: AuthenticationMethod,
    /// Where users may come back to.
    pub(super) redirect_uris: Vec<String>,
    /// The body of the request by which it registered: another one is another client.
    pub(super) request: String,
}

/// The issuer that a registered client belongs to which was configured without one.
// MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredIssuer {
    pub(super) issuer: String,
}

impl StoredTokens {
    /// The text to keep.
    pub(super) fn to_credential(&self) -> Credential {
        write(TOKENS_FORM, self)
    }

    /// What was kept; `None` if that was something else.
    pub(super) fn read(credential: &Credential) -> Option<Self> {
        // It goes into fields of requests, and may have been written by somebody else.
        read(TOKENS_FORM, credential).filter(|it: &Self| is_token(&it.access_token))
    }
}

impl StoredClient {
    /// The text to keep.
    pub(super) fn to_credential(&self) -> Credential {
        write(CLIENT_FORM, self)
    }

    /// What was kept; `None` if that was something else.
    pub(super) fn read(credential: &Credential) -> Option<Self> {
        read(CLIENT_FORM, credential)
    }

    /// What the client authenticates with.
    pub(super) fn secret(&self) -> ClientSecret {
        match &self.client_secret {
            Some(password) => ClientSecret::Password(password.clone()),
            None => ClientSecret::None,
        }
    }

    /// Whether it can be used `now`, in seconds since 1970, by an application that would register
    /// with `request`.
    pub(super) fn fits(&self, request: &str, now: u64) -> bool {
        self.request == request && self.secret_expires_at.is_none_or(|expiry| now < expiry)
    }
}

impl StoredIssuer {
    /// The text to keep.
    pub(super) fn to_credential(&self) -> Credential {
        write(ISSUER_FORM, self)
    }

    /// What was kept; `None` if that was something else.
    pub(super) fn read(credential: &Credential) -> Option<Self> {
        read(ISSUER_FORM, credential)
    }
}

#[derive(Serialize, Deserialize)]
struct Stored<F, T> {
    form: F,
    content: T,
}

fn write<T: Serialize>(form: &str, content: &T) -> Credential {
    let text = serde_json::to_string(&Stored { form, content });
    Credential::new(text.expect("structs of texts and numbers can be written"))
}

fn read<T: DeserializeOwned>(form: &str, credential: &Credential) -> Option<T> {
    let kept: Stored<String, T> = serde_json::from_str(credential.as_str()).ok()?;
    (kept.form == form).then_some(kept.content)
}

impl fmt::Debug for StoredTokens {
    /// Leaves the tokens out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTokens")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredClient {
    /// Leaves the password out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredClient")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn tokens() -> StoredTokens {
        StoredTokens {
            issuer: "https://a.example".into(),
            token_endpoint: "https://a.example/token".into(),
            client_id: "c".into(),
            method: AuthenticationMethod::ClientSecretPost,
            resource: "https://r.example/mcp".into(),
            access_token: "secret-access".into(),
            token_type: TokenType::Dpop,
            refresh_token: Some("secret-refresh".into()),
            expires_at: Some(1_785_000_000),
            requested: "a b".into(),
            granted: "a".into(),
            thumbprint: Some("t".into()),
        }
    }

    fn client() -> StoredClient {
        StoredClient {
            issuer: "https://a.example".into(),
            client_id: "c".into(),
            client_secret: Some("secret-password".into()),
            secret_expires_at: Some(2000),
            method: AuthenticationMethod::ClientSecretBasic,
            redirect_uris: ["http://localhost/cb".into()].into(),
            request: "{}".into(),
        }
    }

    #[test]
    fn a_stored_credential_round_trips() {
        let (tokens, client) = (tokens(), client());
        assert!(StoredTokens::read(&tokens.to_credential()).as_ref() == Some(&tokens));
        assert!(StoredClient::read(&client.to_credential()).as_ref() == Some(&client));
    }

    #[test]
    fn a_credential_of_another_form_is_ignored() {
        assert!(StoredTokens::read(&client().to_credential()).is_none());
        assert!(StoredClient::read(&tokens().to_credential()).is_none());
        let credential = tokens().to_credential();
        let other = credential.as_str().replace(TOKENS_FORM, "mcp-sansio tokens 2");
        let broken = credential.as_str().replace("secret-access", "x\\r\\ny");
        let short = &credential.as_str()[..credential.as_str().len() - 1];
        for text in ["", "null", "{}", "\u{fffd}", &*"[".repeat(100_000), &other, &broken, short] {
            assert!(StoredTokens::read(&Credential::new(text)).is_none(), "{text:.100}");
        }
    }

    #[test]
    fn a_client_fits_until_it_would_register_otherwise_or_its_password_expires() {
        let mut client = client();
        assert!(client.fits("{}", 1999));
        assert!(!client.fits("{}", 2000));
        assert!(!client.fits("{ }", 1999));
        client.secret_expires_at = None;
        assert!(client.fits("{}", u64::MAX));
    }

    #[test]
    fn a_client_authenticates_with_what_it_was_given() {
        let mut client = client();
        assert!(client.secret() == ClientSecret::Password("secret-password".into()));
        client.client_secret = None;
        assert!(client.secret() == ClientSecret::None);
    }

    #[test]
    fn debug_output_hides_secrets() {
        assert!(!format!("{:?} {:?}", tokens(), client()).contains("secret"));
    }

    proptest::proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(
            text in "\\PC{0,20}",
            at in 0_usize..300,
            byte in " |\"|,|1|x",
        ) {
            let mut changed = String::from(tokens().to_credential().as_str());
            changed.replace_range(at..=at, &byte);
            let _ = StoredClient::read(&Credential::new(text));
            if let Some(kept) = StoredTokens::read(&Credential::new(changed)) {
                proptest::prop_assert!(is_token(&kept.access_token));
            }
        }
    }
}
