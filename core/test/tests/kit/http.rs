use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::{Credentials, Revision, Revisions};
use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
use mcp_sansio_test::{Faults, Identity, connect_http};

use crate::{server, text};

/// The revisions with Streamable HTTP.
const OVER_HTTP: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn host(revision: Revision) -> Host {
    Host::new("test", "1.0.0").revisions(Revisions::only(revision))
}

#[test]
fn a_call_gives_its_result_with_every_delay_and_piece() {
    for revision in OVER_HTTP {
        for seed in 0..5 {
            let (client, mut pair) = connect_http(&server(), &host(revision), None);
            let delays = Duration::ZERO..=Duration::from_secs(1);
            pair.set_faults(Faults::new(seed).delay(delays).pieces(1 + seed as usize));
            let call = pair.start(client.call_tool("now", &NoArguments {}));
            let tools = pair.run(client.all_tools()).unwrap();
            assert_eq!(tools.len(), 2, "{revision} {seed}");
            assert_eq!(text(&pair.run(call).unwrap()), "noon", "{revision} {seed}");
        }
    }
}

#[test]
fn the_transcript_shows_requests_and_responses() {
    let (client, mut pair) = connect_http(&server(), &host(Revision::V2026_07_28), None);
    pair.run(client.call_tool("now", &NoArguments {})).unwrap();
    // The list says which arguments of the tool are sent in headers.
    let answered = |method| [method, "< 200", "< result"];
    let methods = ["> POST server/discover", "> POST tools/list", "> POST tools/call"];
    assert_eq!(pair.transcript.outline(), methods.map(answered).concat());
}

#[test]
fn a_request_that_a_proxy_repeats_is_answered_once() {
    let (client, mut pair) = connect_http(&server(), &host(Revision::V2026_07_28), None);
    pair.set_faults(Faults::new(0).duplicate(1));
    assert_eq!(text(&pair.run(client.call_tool("now", &NoArguments {})).unwrap()), "noon");
    assert_eq!(pair.transcript.count("tools/call"), 2);
}

#[test]
fn every_call_ends_wherever_the_exchanges_are_cut() {
    for revision in OVER_HTTP {
        for messages in 0..8 {
            let (client, mut pair) = connect_http(&server(), &host(revision), None);
            pair.set_faults(Faults::new(0).cut_after(messages));
            let result = pair.run(client.call_tool("now", &NoArguments {}));
            assert!(result.is_err() || text(&result.unwrap()) == "noon");
        }
    }
}

#[test]
fn a_restarted_server_has_no_handlers_and_forgets_its_sessions() {
    let (client, mut pair) = connect_http(&server(), &host(Revision::V2025_11_25), None);
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    assert_eq!(pair.transport.pending_handlers(), 1);
    let now = pair.now();
    let restarted = server().http(HttpServerOptions::new(), [1; 32], 1).unwrap();
    pair.transport.restart(restarted, now);
    assert_eq!(pair.transport.pending_handlers(), 0);
    assert!(pair.run(call).is_err());
    assert_eq!(text(&pair.run(client.call_tool("now", &NoArguments {})).unwrap()), "noon");
    assert_eq!(pair.transcript.count("initialize\""), 2);
}

#[test]
fn handlers_see_the_identity_at_every_revision() {
    let server = Server::new("s", "1.0.0").tool("whoami", "", |call: Call<NoArguments>| {
        let name = call.principal().map_or("nobody", |it| it.as_str());
        format!("{name} {}", call.caller().has_scope("read"))
    });
    let ann = || Identity::new("ann");
    for revision in OVER_HTTP {
        for (identity, seen) in [
            (None, "nobody false"),
            (Some(ann()), "ann false"),
            (Some(ann().scopes(["read"])), "ann true"),
        ] {
            let (client, mut pair) = connect_http(&server, &host(revision), identity);
            let result = pair.run(client.call_tool("whoami", &NoArguments {})).unwrap();
            assert_eq!(text(&result), seen);
        }
    }
}

struct ApiKey {
    tenant: u32,
    scopes: Vec<String>,
}

impl Credentials for ApiKey {
    fn scopes(&self) -> &[String] {
        &self.scopes
    }

    fn has_scope(&self, scope: &str) -> bool {
        self.scopes.has_scope(scope)
    }
}

#[test]
fn handlers_see_the_credentials_and_the_values_of_an_identity() {
    struct Region(&'static str);

    let server = Server::new("s", "1.0.0").tool("whoami", "", |call: Call<NoArguments>| {
        let tenant = call.caller().credentials::<ApiKey>().map(|key| key.tenant);
        let region = call.caller().extension::<Region>().map(|region| region.0);
        format!("{tenant:?} {region:?} {}", call.scopes().join(","))
    });
    let key = || ApiKey { tenant: 7, scopes: vec!["read".to_owned()] };
    for revision in OVER_HTTP {
        for identity in [
            Identity::new("ann").credentials(key()).extension(Region("north")),
            Identity::new("ann").extension(Region("north")).credentials(key()),
        ] {
            let (client, mut pair) = connect_http(&server, &host(revision), identity);
            let result = pair.run(client.call_tool("whoami", &NoArguments {})).unwrap();
            assert_eq!(text(&result), r#"Some(7) Some("north") read"#, "{revision}");
        }
    }
}

mod protection {
    use mcp_sansio_oauth::protected_resource::{
        Operation, ProtectedResource, TokenCheck, TokenRefusal,
    };
    use mcp_sansio_test::URL;

    use super::*;

    /// A server that requires the scope `write` for one tool before its handler, and `all` inside.
    fn protected() -> Server {
        let resource = ProtectedResource::new(URL, ["https://auth.example.com"]).unwrap();
        let resource = resource.scopes_for(Operation::tool("delete"), ["write"]).unwrap();
        Server::new("files", "1.0.0")
            .tool("delete", "", async |call: Call<NoArguments>| {
                call.require_scopes(&["all"])?;
                Ok(call.scopes().join(" "))
            })
            .protect(resource, async |_: TokenCheck| Err(TokenRefusal::Invalid))
    }

    #[test]
    fn the_scopes_of_an_identity_are_those_of_its_token() {
        for revision in OVER_HTTP {
            for (scopes, refusals) in [("", 1), ("write", 1), ("write all", 0)] {
                let identity = Identity::new("ann").scopes(scopes.split_whitespace());
                let server = protected();
                let (client, mut pair) = connect_http(&server, &host(revision), identity);
                let result = pair.run(client.call_tool("delete", &NoArguments {}));
                assert_eq!(pair.transcript.count("< 403"), refusals, "{}", pair.transcript);
                assert_eq!(result.is_ok_and(|result| text(&result) == scopes), refusals == 0);
            }
        }
    }

    #[test]
    #[should_panic(expected = "< 401")]
    fn a_client_without_identity_and_token_is_refused() {
        connect_http(&protected(), &host(Revision::LATEST), None);
    }
}
