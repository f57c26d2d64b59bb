//! Fuzz targets for the texts that servers and browsers send while a client authorizes itself.

use mcp_sansio::Revision;
use mcp_sansio::http::{Location, Scheme};
use serde_json::Value;

use mcp_sansio_oauth::{
    AuthorizationResponse, AuthorizationServerMetadata, BearerChallenge, CHALLENGES_MAX, Challenge,
    MetadataUrls, PARAMETERS_MAX, ProtectedResourceMetadata, ResourceUri, State,
};

use super::auth_flow::answer_endpoints;

/// Parses the input as each text in an authorization.
///
/// Challenges are bounded, and re-encoding and parsing one yields the same challenge. Documents are
/// read like a JSON tree. Every URL that is used is protected in transit and has no fragment. A
/// code is only returned with the expected state and issuer. Secrets are not shown.
pub fn auth_texts(bytes: &[u8]) {
    challenges(bytes);
    answer_endpoints(bytes);
    resource_metadata(bytes);
    server_metadata(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        urls(text.trim());
        redirect(text);
    }
}

fn challenges(bytes: &[u8]) {
    let challenges = Challenge::parse(bytes.split(|byte| *byte == b'\n'));
    assert!(challenges.len() <= CHALLENGES_MAX);
    let mut written: Vec<String> = Vec::new();
    for challenge in &challenges {
        assert!(challenge.params.len() <= PARAMETERS_MAX);
        assert!(challenge.token68.is_none() || challenge.params.is_empty());
        let names: Vec<&str> = challenge.params.iter().map(|(name, _)| &**name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name} twice");
        }
        written.push(spelled(challenge));
    }
    let again = Challenge::parse(written.iter().map(String::as_bytes));
    assert_eq!(again, challenges, "from {written:?}");
    let wanted = challenges.iter().filter_map(BearerChallenge::from_challenge);
    let best = wanted.clone().find(|it| it.resource_metadata.is_some());
    assert_eq!(BearerChallenge::select(&challenges), best.or_else(|| wanted.clone().next()));
}

/// Encodes a challenge with all values quoted and all possible characters escaped.
fn spelled(challenge: &Challenge) -> String {
    let mut text = challenge.scheme.clone();
    if let Some(token68) = &challenge.token68 {
        text.push(' ');
        text.push_str(token68);
    }
    for (index, (name, value)) in challenge.params.iter().enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        text.push_str(name);
        text.push_str("=\"");
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
    }
    text
}

fn server() -> Location {
    Location::parse("https://mcp.example.com/a/mcp").expect("a valid URL")
}

fn resource_metadata(bytes: &[u8]) {
    let Ok(metadata) = ProtectedResourceMetadata::parse(bytes) else { return };
    let Some(tree) = tree(bytes) else { return };
    assert_eq!(tree["resource"], *metadata.resource);
    assert_eq!(texts(&tree, "authorization_servers"), Some(metadata.authorization_servers.clone()));
    if let Ok(resource) = metadata.resource_for(&server()) {
        assert_eq!(resource.as_str(), metadata.resource);
        resource_fits(&resource);
    }
    for issuer in metadata.issuers().into_iter().flatten() {
        urls(issuer);
    }
}

fn resource_fits(resource: &ResourceUri) {
    let named = Location::parse(resource.as_str()).expect("parsed before");
    assert!(named.same_origin(&server()), "{resource}");
    let path = named.path_and_query().trim_end_matches('/');
    assert!(server().path_and_query().starts_with(path), "{resource}");
    assert!(!resource.as_str().contains('#'), "{resource}");
}

fn server_metadata(bytes: &[u8]) {
    let Ok(metadata) = AuthorizationServerMetadata::parse(bytes) else { return };
    let Some(tree) = tree(bytes) else { return };
    assert_eq!(tree["issuer"], *metadata.issuer);
    let methods = texts(&tree, "code_challenge_methods_supported").unwrap_or_default();
    assert_eq!(metadata.check_pkce().is_ok(), methods.iter().any(|it| it == "S256"));
    assert!(metadata.check_issuer(&metadata.issuer).is_ok());
    let endpoints = [
        ("authorization_endpoint", metadata.authorization_endpoint().ok()),
        ("token_endpoint", metadata.token_endpoint().ok()),
        ("registration_endpoint", metadata.registration_endpoint().ok().flatten()),
    ];
    for (name, endpoint) in endpoints {
        let Some(endpoint) = endpoint else { continue };
        let text = tree[name].as_str().expect("read from a string");
        assert_eq!(Location::parse(text).as_ref(), Ok(&endpoint));
        assert!(!text.contains('#') && is_private(&endpoint), "{name} {text:?}");
    }
}

/// Parses a document as a tree; `None` if only the tree rejects parts that the parser ignores, such
/// as half of a surrogate pair, or a number out of range.
fn tree(document: &[u8]) -> Option<Value> {
    let document = std::str::from_utf8(document).expect("JSON is UTF-8");
    serde_json::from_str(document).ok()
}

fn texts(tree: &Value, name: &str) -> Option<Vec<String>> {
    match tree.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(texts)) => {
            texts.iter().map(|text| text.as_str().map(String::from)).collect()
        }
        Some(_) => None,
    }
}

/// Returns whether data sent to the location is protected in transit.
fn is_private(location: &Location) -> bool {
    location.origin().scheme() == Scheme::Https || location.origin().is_loopback()
}

fn urls(text: &str) {
    for revision in Revision::ALL {
        if let Ok(urls) = MetadataUrls::for_issuer(revision, text) {
            let issuer = Location::parse(text).expect("an issuer is a URL");
            for url in urls {
                assert!(url.same_origin(&issuer) && is_private(&url), "{url:?} of {text:?}");
                assert!(url.as_str().contains("/.well-known/"), "{url:?}");
            }
        }
        for url in MetadataUrls::for_resource(revision, &server(), Some(text)) {
            assert!(is_private(&url), "{url:?} of {text:?}");
        }
    }
    if let Ok(resource) = ResourceUri::from_metadata(text, &server()) {
        resource_fits(&resource);
    }
}

fn redirect(text: &str) {
    let Ok(response) = AuthorizationResponse::parse(text) else { return };
    let state = State::new([0; 32]);
    let issuer = "https://a.example";
    let query = text.split('#').next().and_then(|url| url.split_once('?')).map_or("", |it| it.1);
    let plain: Vec<(String, String)> = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter_map(|(name, value)| Some((plain(name)?, plain(value)?)))
        .collect();
    let has = |name: &str, value: &str| {
        let mut named = plain.iter().filter(|(it, _)| it == name);
        named.next().is_some_and(|(_, it)| it == value) && named.next().is_none()
    };
    assert_eq!(response.answers(&state), has("state", state.as_str()));
    for iss_supported in [false, true] {
        let checked = response.clone().check(&state, issuer, iss_supported);
        let Ok(code) = checked else { continue };
        assert!(has("state", state.as_str()) && has("code", code.as_str()), "{query}");
        assert!(!plain.iter().any(|(name, _)| name == "error"), "{query}");
        let issued = plain.iter().any(|(name, _)| name == "iss");
        assert!(has("iss", issuer) || !(issued || iss_supported), "{query}");
        let shown = format!("{response:?}{code:?}");
        assert_eq!(
            shown, "AuthorizationResponse(..)AuthorizationCode(..)",
            "the output may contain a secret"
        );
    }
}

/// Decodes a part of a form.
fn plain(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(plain).ok()
}
