//! The credentials that an application stores between its runs.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::authentication::AuthenticationMethod;
use super::token::{TokenType, is_token};
use crate::client::{ClientSecret, Credential, Generation};

/// The names of the formats. A changed format needs a new name, because stored credentials may have
/// any age.
const TOKENS_FORM: &str = "mcp-sansio tokens 1";
const CLIENT_FORM: &str = "mcp-sansio client 1";
const ISSUER_FORM: &str = "mcp-sansio issuer 1";

/// The stored tokens for an MCP server. Contains no password that the application has configured.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredTokens {
    /// The issuer of the tokens.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-039]
    pub(crate) issuer: String,
    /// The endpoint that renews them.
    pub(crate) token_endpoint: String,
    /// The id of the client at the issuer.
    pub(crate) client_id: String,
    /// How the client authenticates at the issuer.
    pub(crate) method: AuthenticationMethod,
    /// The password of a dynamically registered client. The refresh token needs it even after
    /// another registration at the issuer has replaced that of this client. Absent in credentials
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    /// The access token.
    pub(crate) access_token: String,
    /// The type of the access token.
    pub(crate) token_type: TokenType,
    /// The refresh token.
    pub(crate) refresh_token: Option<String>,
    /// When the access token expires, in seconds since 1970, if known.
    pub(crate) expires_at: Option<u64>,
    /// The requested scopes, separated by spaces.
    pub(crate) requested: String,
    /// The granted scopes, separated by spaces.
    pub(crate) granted: String,
    /// The thumbprint of the key that the tokens are bound to.
    pub(crate) thumbprint: Option<String>,
    /// Which tokens these replace. Absent in credentials of earlier versions.
    #[serde(default)]
    pub(crate) generation: Generation,
}

/// The dynamic registration of a client at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredClient {
    /// The authorization server.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
    pub(crate) issuer: String,
    /// The id of the client there.
    pub(crate) client_id: String,
    /// The password.
    pub(crate) client_secret: Option<String>,
    /// When the password expires, in seconds since 1970; `None` if never.
    pub(crate) secret_expires_at: Option<u64>,
    /// How the client authenticates.
    pub(crate) method: AuthenticationMethod,
    /// The registered redirect URIs.
    pub(crate) redirect_uris: Vec<String>,
    /// The body of the registration request without its scopes: a different request needs a new
    /// registration.
    pub(crate) request: String,
    /// The scopes that were to be registered, separated by spaces. Absent in credentials of earlier
    /// versions, which registered none.
    #[serde(default)]
    pub(crate) scope: String,
}

/// The issuer that a registered client without a configured issuer is bound to.
// MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredIssuer {
    pub(crate) issuer: String,
}

impl StoredTokens {
    /// Returns the text to store.
    pub(crate) fn to_credential(&self) -> Credential {
        write(TOKENS_FORM, self)
    }

    /// Reads a stored credential; `None` if it is of another kind.
    pub(crate) fn read(credential: &Credential) -> Option<Self> {
        // The token is sent in a request field, and other programs may have changed the stored
        // text.
        let mut kept: Self = read(TOKENS_FORM, credential)?;
        kept.generation.name_after(&kept.access_token);
        is_token(&kept.access_token).then_some(kept)
    }
}

impl StoredClient {
    /// Returns the text to store.
    pub(crate) fn to_credential(&self) -> Credential {
        write(CLIENT_FORM, self)
    }

    /// Reads a stored credential; `None` if it is of another kind.
    pub(crate) fn read(credential: &Credential) -> Option<Self> {
        read(CLIENT_FORM, credential)
    }

    /// Returns the credential of the client.
    pub(crate) fn secret(&self) -> ClientSecret {
        match &self.client_secret {
            Some(password) => ClientSecret::Password(password.clone()),
            None => ClientSecret::None,
        }
    }

    /// Whether the registration is valid at `now`, in seconds since 1970, and was made with
    /// `request`.
    pub(crate) fn fits(&self, request: &str, now: u64) -> bool {
        self.request == request && self.secret_expires_at.is_none_or(|expiry| now < expiry)
    }
}

impl StoredIssuer {
    /// Returns the text to store.
    pub(crate) fn to_credential(&self) -> Credential {
        write(ISSUER_FORM, self)
    }

    /// Reads a stored credential; `None` if it is of another kind.
    pub(crate) fn read(credential: &Credential) -> Option<Self> {
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
    Credential::new(text.expect("strings and numbers serialize"))
}

fn read<T: DeserializeOwned>(form: &str, credential: &Credential) -> Option<T> {
    let kept: Stored<String, T> = serde_json::from_str(credential.as_str()).ok()?;
    (kept.form == form).then_some(kept.content)
}

mcp_sansio::partial_debug! {
    /// Omits the tokens.
    impl Debug for StoredTokens { issuer, client_id, resource, .. }
}

mcp_sansio::partial_debug! {
    /// Omits the password.
    impl Debug for StoredClient { issuer, client_id, .. }
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
            client_secret: Some("secret-password".into()),
            resource: "https://r.example/mcp".into(),
            access_token: "secret-access".into(),
            token_type: TokenType::Dpop,
            refresh_token: Some("secret-refresh".into()),
            expires_at: Some(1_785_000_000),
            requested: "a b".into(),
            granted: "a".into(),
            thumbprint: Some("t".into()),
            generation: Generation::first("l".into()),
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
            scope: "a b".into(),
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
    fn a_client_fits_until_its_request_changes_or_its_password_expires() {
        let mut client = client();
        assert!(client.fits("{}", 1999));
        assert!(!client.fits("{}", 2000));
        assert!(!client.fits("{ }", 1999));
        client.secret_expires_at = None;
        assert!(client.fits("{}", u64::MAX));
    }

    #[test]
    fn a_client_authenticates_with_its_registered_secret() {
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
