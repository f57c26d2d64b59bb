//! Requests and notifications that repeat a member, from servers that try to make two readers in a
//! host disagree.

use std::sync::{Arc, Mutex};

use mcp_sansio::gate::MethodKind;
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Role, Root,
    SamplingContent,
};
use mcp_sansio::{Era, Instant, Revision, Revisions, Side};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, Endpoint};
use mcp_sansio_handlers::{Client, Host, HostRequest};
use serde_json::{Value, json};

use crate::duplicate_members::{message, messages_in};
use crate::duplicates::{described, escaped, others, repeats};

/// The requests and notifications that reached a handler, and the text of each violation.
type Log = Arc<Mutex<Vec<String>>>;

/// A host that answers every request. The test plays its server.
struct Hosted {
    endpoint: ClientEndpoint,
    log: Log,
    _client: Client,
}

impl Hosted {
    fn new(revision: Revision) -> Self {
        let log = Log::default();
        let note = |what: &'static str| {
            let log = Arc::clone(&log);
            move || log.lock().unwrap().push(what.into())
        };
        let [elicited, sampled, listed] = ["elicited", "sampled", "listed"].map(note);
        let told = Arc::clone(&log);
        let host = Host::new("h", "1")
            .revisions(Revisions::only(revision))
            .on_elicit(move |_: HostRequest<ElicitParams>| {
                elicited();
                ElicitResult::cancel()
            })
            .on_sample_with_tools(move |_: HostRequest<CreateMessageParams>| {
                sampled();
                CreateMessageResult::new(Role::Assistant, SamplingContent::text("4"), "abacus")
            })
            .on_roots(move |_: HostRequest<()>| {
                listed();
                vec![Root::new("file:///a")]
            })
            .observe(move |event| {
                let what = match event {
                    Event::Violation(violation) => format!("violation: {violation}"),
                    Event::Notification(_) | Event::Progress(_) | Event::Subscribed(_) => {
                        "told".into()
                    }
                    _ => return,
                };
                told.lock().unwrap().push(what);
            });
        let (client, endpoint) = host.connect(7, Instant::ZERO);
        let mut it = Self { endpoint, log: Arc::clone(&log), _client: client };
        let opening = it.read();
        let offers = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true }, "logging": {},
            "tasks": { "requests": { "tools": { "call": {} } } },
            "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let result = match revision.era() {
            Era::Legacy => json!({ "protocolVersion": revision.as_str(), "capabilities": offers,
                "serverInfo": { "name": "s", "version": "1" } }),
            _ => json!({ "resultType": "complete", "capabilities": offers,
                "supportedVersions": [revision.as_str()], "ttlMs": 0, "cacheScope": "private" }),
        };
        let id = &opening[0]["id"];
        it.tell(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
        assert_eq!(it._client.session().unwrap().revision, revision);
        log.lock().unwrap().clear();
        it
    }

    fn read(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        self.endpoint.transmit(&mut |bytes| {
            said.extend_from_slice(bytes);
            bytes.len()
        });
        messages_in(&String::from_utf8(said).unwrap())
    }

    fn tell(&mut self, text: &str) -> Vec<Value> {
        self.endpoint.handle_frame(Ok(text.as_bytes()), Instant::ZERO);
        self.read()
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// Sends a request that reaches no handler, and returns the error message.
    fn refused(&mut self, method: &str, params: &str) -> String {
        let answers = self.tell(&message(Some("\"q\""), method, params));
        assert_eq!(answers.len(), 1, "{method} {params}: {answers:?}");
        assert_eq!(answers[0]["id"], "q");
        assert_eq!(answers[0]["error"]["code"], -32602, "{method} {params}: {answers:?}");
        let noted = self.noted();
        assert!(noted.iter().all(|it| it.starts_with("violation")), "{method} {params}: {noted:?}");
        answers[0]["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// Returns a valid value for a member inside a member.
fn fitting(inner: &str) -> Value {
    match inner {
        "type" => json!("object"),
        "mode" => json!("auto"),
        "properties" => json!({}),
        "required" | "hints" => json!([]),
        "ttl" | "costPriority" | "speedPriority" | "intelligencePriority" => json!(1),
        _ => json!("a"),
    }
}

#[test]
fn a_request_of_a_server_that_repeats_a_member_of_its_schema_reaches_no_handler() {
    let mut cases = 0;
    for revision in Revisions::LEGACY.iter() {
        let mut host = Hosted::new(revision);
        let roots = host.tell(&message(Some("1"), "roots/list", "{}"));
        assert_eq!(host.noted(), ["listed"], "{roots:?}");
        for described in described(revision, Side::Server, MethodKind::Request) {
            let method = described.method.as_str();
            for (key, nested) in &described.members {
                for (params, _) in repeats(&described, key, revision) {
                    let said = host.refused(method, &params);
                    assert!(said.contains(key.as_str()), "{revision} {params}: {said}");
                    cases += 1;
                }
                let others = others(&described, key, revision);
                for inner in nested.as_object().unwrap().keys().filter(|_| key != "_meta") {
                    for again in [inner.clone(), escaped(inner)] {
                        let value = fitting(inner);
                        let params = format!(
                            r#"{{"{key}":{{"{inner}":{value},"{again}":{value}}}{others}}}"#
                        );
                        let said = host.refused(method, &params);
                        let repeated = ["repeated", "duplicate", "twice"];
                        assert!(
                            repeated.iter().any(|it| said.contains(it)) && said.contains(&**inner),
                            "{revision} {method} {params}: {said}"
                        );
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 500, "{cases}");
}

#[test]
fn a_request_of_a_server_that_repeats_a_key_of_its_metadata_reaches_no_handler() {
    let mut host = Hosted::new(Revision::V2025_11_25);
    for key in ["progressToken", "io.modelcontextprotocol/related-task"] {
        let params = format!(r#"{{"_meta":{{"{key}":"a","{}":"b"}}}}"#, escaped(key));
        for method in ["roots/list", "ping"] {
            assert!(host.refused(method, &params).contains(key));
        }
    }
    let token = host.tell(&message(Some("1"), "roots/list", r#"{"_meta":{"progressToken":1}}"#));
    assert!(token[0]["result"].is_object(), "{token:?}");
}

#[test]
fn a_notification_of_a_server_that_repeats_a_member_is_dropped_and_reported() {
    for revision in Revision::ALL {
        let mut host = Hosted::new(revision);
        for described in described(revision, Side::Server, MethodKind::Notification) {
            for (key, _) in &described.members {
                for (params, _) in repeats(&described, key, revision) {
                    let text = message(None, described.method.as_str(), &params);
                    assert_eq!(host.tell(&text), Vec::<Value>::new(), "{revision} {text}");
                    let noted = host.noted();
                    let [one] = &*noted else { panic!("{revision} {text}: {noted:?}") };
                    let told = one.starts_with("violation") && one.contains(&**key);
                    assert!(told, "{revision} {text}: {one}");
                }
            }
        }
    }
}
