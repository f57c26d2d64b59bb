//! JSON Web Tokens whose signature the application creates.

use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

/// A token without its signature: the input of the signature (RFC 7515, section 5.1).
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SigningInput(String);

impl SigningInput {
    /// Creates a token from these two JSON objects.
    pub(super) fn new(header: &impl Serialize, claims: &impl Serialize) -> Self {
        let mut input = String::new();
        push(&mut input, header);
        input.push('.');
        push(&mut input, claims);
        Self(input)
    }

    /// Returns the text to sign.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the token, given the raw signature over [`Self::as_str`].
    pub(super) fn signed(&self, signature: &[u8]) -> String {
        let mut token = self.0.clone();
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }
}

impl fmt::Debug for SigningInput {
    /// Omits the text to sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningInput(..)")
    }
}

fn push(text: &mut String, part: &impl Serialize) {
    let json = serde_json::to_vec(part).expect("strings and numbers serialize");
    URL_SAFE_NO_PAD.encode_string(json, text);
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[derive(Serialize)]
    struct Header {
        alg: &'static str,
    }

    #[derive(Serialize)]
    struct Claims {
        iss: &'static str,
        exp: u64,
    }

    fn input() -> SigningInput {
        SigningInput::new(&Header { alg: "ES256" }, &Claims { iss: "\"é", exp: 1_300_819_380 })
    }

    #[test]
    fn a_token_is_three_parts_in_base64url_without_padding() {
        let input = input();
        let signature = [0xfb, 0xff, 0xfe, 0x01];
        let token = input.signed(&signature);
        assert_eq!(token.strip_prefix(input.as_str()), Some(".-__-AQ"));
        let parts: Option<alloc::vec::Vec<_>> =
            token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok()).collect();
        assert_eq!(
            parts.as_deref(),
            Some(
                &[
                    br#"{"alg":"ES256"}"#.to_vec(),
                    r#"{"iss":"\"é","exp":1300819380}"#.into(),
                    signature.to_vec(),
                ][..]
            )
        );
    }

    #[test]
    fn debug_output_hides_the_signing_input() {
        assert_eq!(format!("{:?}", input()), "SigningInput(..)");
    }
}
