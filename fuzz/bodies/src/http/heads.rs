use std::collections::BTreeSet;

use crate::inputs;
use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::http::{
    Admission, Content, HttpServerOptions, Location, RequestHead, Response, Server, ServerTransmit,
};
use mcp_sansio::jsonrpc::{Frame, Message, parse};
use mcp_sansio::{Instant, Revisions};

/// Checks the handling of request heads: the first line is the method and the target, each other
/// one a field.
///
/// A server's decision does not depend on the case of names, on the white space around values, or
/// on whether it is made before or after the body arrives. An admitted request has a host and an
/// origin of this machine, a served method and path, and a body that is declared as JSON and short
/// enough. A refused one gets a complete response with valid fields. Each field is also parsed as a
/// URL.
pub fn http_heads(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let request = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let (method, target) = request.split_once(' ').unwrap_or((request, "/mcp"));
    let fields: Vec<(&str, &[u8])> = lines
        .filter_map(|line| {
            let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
            Some((std::str::from_utf8(name).ok()?, &value[1..]))
        })
        .collect();
    for (_, value) in &fields {
        check_url(value);
    }
    let paths = ["/mcp", "/sse", "/messages"];
    for revisions in [Revisions::ALL, Revisions::LEGACY, Revisions::MODERN] {
        for (options, paths) in [
            (HttpServerOptions::new(), &paths[..1]),
            (HttpServerOptions::new().legacy_sse("/sse", "/messages"), &paths),
            (HttpServerOptions::new().any_path(), &[]),
        ] {
            let peer = inputs::server_options(b"").revisions(revisions);
            let server =
                Server::new(peer, options, [7; 32], 0).expect("a server without tools is valid");
            check_admission(server, paths, method, target, &fields);
        }
    }
}

fn check_admission(
    mut server: Server,
    paths: &[&str],
    method: &str,
    target: &str,
    fields: &[(&str, &[u8])],
) {
    let mut head = RequestHead::new(method, target);
    fields.iter().for_each(|(name, value)| head.field(name, value));
    let admitted = server.admit(&head);
    if let Err(refused) = server.reader().locate(&head) {
        assert_eq!(admitted.as_ref(), Err(&refused), "a path is treated inconsistently");
    }

    let shouted: Vec<(String, Vec<u8>)> = fields
        .iter()
        .map(|(name, value)| (name.to_ascii_uppercase(), [b" \t", *value, b" "].concat()))
        .collect();
    let mut other = RequestHead::new(method, target);
    shouted.iter().for_each(|(name, value)| other.field(name, value));
    assert_eq!(server.admit(&other), admitted, "the case of names makes a difference");

    match &admitted {
        Ok(admission) => check_admitted(*admission, paths, &head, fields),
        Err(response) => check_refusal(response),
    }
    let now = Instant::ZERO;
    let (exchange, event) = server.handle_request(&head, b"", &mcp_sansio::Caller::ANONYMOUS, now);
    drop(event);
    let sent = server.poll_transmit(exchange, now);
    match (admitted, sent) {
        (Err(refused), sent) => assert_eq!(sent, Some(ServerTransmit::Respond(refused))),
        (Ok(_), Some(ServerTransmit::Respond(response))) => check_refusal(&response),
        (Ok(_), Some(ServerTransmit::Open(_))) => {
            // An event stream opens: one without a session is that of the deprecated transport.
            assert_eq!((method, head.path()), ("GET", "/sse"));
        }
        (Ok(_), sent) => panic!("{sent:?} for a request without a body"),
    }
    server.handle_disconnect(exchange, now);
    assert_eq!(server.exchange_count(), 0);
}

/// Checks the properties of an admitted request, independent of the server's implementation.
fn check_admitted(
    admission: Admission,
    paths: &[&str],
    head: &RequestHead<'_>,
    fields: &[(&str, &[u8])],
) {
    // With its body, a message whose standard headers contradict each other is refused.
    let standard = ["mcp-method", "mcp-name", "mcp-protocol-version"];
    if head.method() == "POST" && standard.iter().any(|name| values(fields, name).len() > 1) {
        return;
    }
    let host = only(fields, "host").expect("an admitted request has a host");
    assert!(is_here(host), "{}", String::from_utf8_lossy(host));
    if let Some(origin) = only(fields, "origin") {
        let host = [&b"http://"[..], b"https://"].into_iter().find_map(|it| strip(origin, it));
        assert!(host.is_some_and(is_here), "{}", String::from_utf8_lossy(origin));
    }
    assert!(matches!(head.method(), "POST" | "GET" | "DELETE"), "{}", head.method());
    assert!(paths.is_empty() || paths.contains(&head.path()), "{}", head.path());
    let media = only(fields, "content-type");
    if head.method() == "POST" {
        let media = media.expect("a body has a type").to_ascii_lowercase();
        assert!(media.starts_with(b"application/json"), "{}", String::from_utf8_lossy(&media));
    }
    for name in standard.into_iter().chain(["last-event-id", "mcp-session-id"]) {
        only(fields, name);
    }
    let length = only(fields, "content-length");
    let length = length.and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    assert!(length.is_none_or(|length: usize| length <= admission.body_bytes_max));
}

/// Returns the value of the field with this name. Panics if there are several.
fn only<'a>(fields: &[(&str, &'a [u8])], name: &str) -> Option<&'a [u8]> {
    let values = values(fields, name);
    assert!(values.len() < 2, "{name} twice");
    values.into_iter().next()
}

/// Returns the different values of the fields with this name.
fn values<'a>(fields: &[(&str, &'a [u8])], name: &str) -> BTreeSet<&'a [u8]> {
    let named = fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.trim_ascii()).collect()
}

/// Returns whether a host, with or without a port, may be this machine.
fn is_here(host: &[u8]) -> bool {
    ["localhost", "127.", "[::1]", "[0:", "[::"]
        .iter()
        .any(|it| strip(host, it.as_bytes()).is_some())
        && !host.contains(&b'@')
        && !host.contains(&b',')
}

fn strip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Checks that a refusal is a complete response with an error.
fn check_refusal(response: &Response) {
    let Response { head, body, .. } = response;
    assert!((400..600).contains(&head.status.0), "{:?}", head.status);
    assert_eq!(head.content, Some(Content::Json));
    check_fields(response.head.fields().map(|(_, value)| value.into_owned()));
    match parse(body, ParseLimits::default()) {
        Ok(Frame::Single(Message::Response(response))) => assert!(response.outcome.is_err()),
        other => panic!("{other:?} in a refusal"),
    }
}

pub(super) fn check_fields(values: impl Iterator<Item = String>) {
    for value in values {
        let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        assert!(value.bytes().all(visible), "{value:?} in a header field");
    }
}

/// The id of an event is the peer's own text, and browsers return it as UTF-8.
pub(super) fn check_event_id(value: &str) {
    let visible = |byte: u8| byte >= b' ' && byte != 0x7F;
    assert!(value.bytes().all(visible) && !value.is_empty(), "{value:?} as the id of an event");
}

/// Checks that a URL has one normalized form, and resolves to itself against any base.
fn check_url(value: &[u8]) {
    let Ok(text) = std::str::from_utf8(value.trim_ascii()) else { return };
    let base = Location::parse("https://example.com:8443/a/b?c").expect("a valid URL");
    let resolved = base.resolve(text);
    if let Ok(location) = Location::parse(text) {
        assert_eq!(
            Location::parse(location.as_str()),
            Ok(location.clone()),
            "a different normalized form"
        );
        // A reference that begins with two slashes names a host.
        if !location.path_and_query().starts_with("//") {
            assert_eq!(location.resolve(location.path_and_query()), Ok(location.clone()));
        }
        assert_eq!(resolved, Ok(location.clone()), "a URL depends on its base");
        check_fields([location.authority().into(), location.path_and_query().into()].into_iter());
        assert!(location.as_str().ends_with(location.path_and_query()));
        assert!(location.path_and_query().starts_with('/'));
    } else if let Ok(resolved) = resolved {
        assert_eq!(Location::parse(resolved.as_str()), Ok(resolved.clone()));
        // A fragment does not affect the target of a reference.
        let text = text.split('#').next().unwrap_or_default();
        let elsewhere = text.starts_with("//") || Location::parse(text).is_ok();
        if text.starts_with("//") {
            let absolute = ["https:", text].concat();
            assert_eq!(Location::parse(&absolute).as_ref(), Ok(&resolved), "{text:?}");
        }
        assert!(elsewhere || resolved.same_origin(&base), "{text:?} leads to {resolved:?}");
    }
}
