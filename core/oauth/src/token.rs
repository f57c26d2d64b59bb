//! Token requests, and the responses of the token endpoint.

mod response;

use alloc::string::ToString;

use super::form::Form;
use super::resource::ResourceUri;
use super::scopes::Scopes;

pub use response::{TokenError, TokenFault};
pub(super) use response::{TokenPurpose, TokenResponse, TokenType, is_token};

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The type of a grant: a value of `grant_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantType {
    /// A code from the user's redirect.
    AuthorizationCode,
    /// A refresh token from an earlier response.
    RefreshToken,
    /// The identity of the client alone.
    ClientCredentials,
    /// An assertion (RFC 7523).
    JwtBearer,
    /// Another token (RFC 8693).
    TokenExchange,
}

/// The grant that is exchanged for a token.
#[derive(Clone, Copy)]
pub(super) enum TokenGrant<'a> {
    /// See [`GrantType::AuthorizationCode`].
    AuthorizationCode {
        /// The code.
        code: &'a str,
        /// The redirect URI of the authorization request.
        redirect_uri: &'a str,
        /// The verifier of the authorization request's challenge.
        code_verifier: &'a str,
    },
    /// See [`GrantType::RefreshToken`].
    RefreshToken(&'a str),
    /// See [`GrantType::ClientCredentials`].
    ClientCredentials,
    /// See [`GrantType::JwtBearer`].
    JwtBearer {
        /// The signed assertion.
        assertion: &'a str,
    },
    /// An ID token, to be exchanged for a grant (ID-JAG) that the authorization server accepts as
    /// an assertion. See [`GrantType::TokenExchange`].
    IdToken {
        /// The ID token.
        id_token: &'a str,
        /// The issuer of the authorization server.
        audience: &'a str,
    },
}

/// A token request without the client's identity, which
/// [`ClientProof::add_to`](super::client_authentication::ClientProof::add_to) adds.
#[derive(Clone, Copy)]
pub(super) struct TokenRequest<'a> {
    /// The grant.
    pub(super) grant: TokenGrant<'a>,
    /// The resource that the token is for.
    pub(super) resource: &'a ResourceUri,
    /// The requested scopes. Omitted if empty, and with a code, whose authorization request
    /// contained them.
    pub(super) scopes: &'a Scopes,
}

impl GrantType {
    /// Returns the value of `grant_type`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }
}

impl TokenGrant<'_> {
    const fn grant_type(&self) -> GrantType {
        match self {
            Self::AuthorizationCode { .. } => GrantType::AuthorizationCode,
            Self::RefreshToken(_) => GrantType::RefreshToken,
            Self::ClientCredentials => GrantType::ClientCredentials,
            Self::JwtBearer { .. } => GrantType::JwtBearer,
            Self::IdToken { .. } => GrantType::TokenExchange,
        }
    }
}

impl TokenRequest<'_> {
    /// Returns the parameters of the request.
    pub(super) fn form(&self) -> Form {
        let mut form = Form::new();
        form.push("grant_type", self.grant.grant_type().as_str());
        let mut scoped = true;
        match self.grant {
            TokenGrant::AuthorizationCode { code, redirect_uri, code_verifier } => {
                form.push("code", code);
                form.push("redirect_uri", redirect_uri);
                // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011]
                form.push("code_verifier", code_verifier);
                scoped = false;
            }
            TokenGrant::RefreshToken(token) => form.push("refresh_token", token),
            TokenGrant::ClientCredentials => {}
            TokenGrant::JwtBearer { assertion } => form.push("assertion", assertion),
            TokenGrant::IdToken { id_token, audience } => {
                form.push("subject_token", id_token);
                form.push("subject_token_type", ID_TOKEN);
                form.push("requested_token_type", ID_JAG);
                form.push("audience", audience);
            }
        }
        // MCP 2026-07-28 basic/authorization/index#resource-parameter-implementation [AUTHC-040]
        form.push("resource", self.resource.as_str());
        if scoped && !self.scopes.is_empty() {
            form.push("scope", &self.scopes.to_string());
        }
        form
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use mcp_sansio::http::Location;

    use super::*;

    const RESOURCE: &str = "&resource=https%3A%2F%2Fr.example%2Fmcp";

    fn form(grant: TokenGrant<'_>, scopes: &str) -> String {
        let server = Location::parse("https://r.example/mcp").expect("a URL");
        let resource = &ResourceUri::from_server(&server);
        let scopes = &Scopes::parse(scopes, 8).expect("few scopes");
        TokenRequest { grant, resource, scopes }.form().as_str().into()
    }

    const CODE: TokenGrant<'_> = TokenGrant::AuthorizationCode {
        code: "c+",
        redirect_uri: "http://localhost:1/cb",
        code_verifier: "v",
    };

    #[test]
    fn each_grant_has_its_parameters() {
        // Rule: [AUTHC-011].
        for (grant, text) in [
            (
                CODE,
                "grant_type=authorization_code&code=c%2B\
                 &redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb&code_verifier=v",
            ),
            (TokenGrant::RefreshToken("t"), "grant_type=refresh_token&refresh_token=t"),
            (TokenGrant::ClientCredentials, "grant_type=client_credentials"),
            (
                TokenGrant::JwtBearer { assertion: "a.b.c" },
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c",
            ),
            (
                TokenGrant::IdToken { id_token: "a.b.c", audience: "https://a.example" },
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
                 &subject_token=a.b.c\
                 &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token\
                 &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag\
                 &audience=https%3A%2F%2Fa.example",
            ),
        ] {
            assert_eq!(form(grant, ""), [text, RESOURCE].concat());
        }
    }

    #[test]
    fn every_request_names_the_resource() {
        // Rule: [AUTHC-040].
        for grant in [
            CODE,
            TokenGrant::RefreshToken("t"),
            TokenGrant::ClientCredentials,
            TokenGrant::JwtBearer { assertion: "a" },
            TokenGrant::IdToken { id_token: "i", audience: "a" },
        ] {
            assert_eq!(form(grant, "a b").matches(RESOURCE).count(), 1);
        }
    }

    #[test]
    fn scopes_are_sent_except_with_a_code() {
        assert!(!form(CODE, "a b").contains("scope"));
        assert!(form(TokenGrant::RefreshToken("t"), "a b").ends_with("&scope=a+b"));
        assert!(form(TokenGrant::ClientCredentials, "a").ends_with("&scope=a"));
    }
}
