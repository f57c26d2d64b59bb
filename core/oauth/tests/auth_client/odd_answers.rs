//! Answers of authorization servers that users rely on although they are not those of the
//! specifications.

use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, ClientSecret,
};

use crate::answers::{Answer, Reply, issuer, ok, resource, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare,
};

/// `AS` with a final slash.
const SLASH: &str = "https://as.example/";

/// Returns a network in which the resource and the authorization server spell the issuer like
/// this.
fn spelled(options: AuthorizationOptions, named: &str, own: &str) -> TestNetwork {
    let mut network = TestNetwork::new(options);
    respell(&mut network, named, own);
    network
}

fn respell(network: &mut TestNetwork, named: &str, own: &str) {
    network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{named}"]}}"#)));
    let document = format!(
        r#"{{"issuer":"{own}","authorization_endpoint":"{AS}/authorize","token_endpoint":"{TOKEN}","registration_endpoint":"{REGISTER}","code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}}"#
    );
    network.get(ASM, ok(&document));
    network.user = User::SignsIn(format!("&iss={own}"));
}

#[test]
fn an_issuer_may_be_spelled_with_and_without_its_final_slash() {
    // Rule: [AUTHC-025].
    for (named, own) in [(SLASH, AS), (AS, SLASH), (SLASH, SLASH)] {
        let registered = client("app", Some(AS), ClientSecret::Password("p".into()));
        let options = code_bare().registered(registered).expect("a client");
        let mut network = spelled(options, named, own);
        let text = network.run();
        assert!(text.contains(&format!("authorized by {own}\n")), "{text}");
    }
    let mut network = spelled(code(), AS, "https://as.example//");
    assert!(network.run().contains("the metadata describes another issuer"));
}

#[test]
fn the_issuer_of_a_redirect_is_compared_as_the_authorization_server_spells_it() {
    // Rule: [AUTHC-057] [AUTHC-060].
    let mut network = spelled(code(), AS, SLASH);
    network.user = User::SignsIn(format!("&iss={AS}"));
    let text = network.run();
    assert!(text.contains("the response comes from another issuer"), "{text}");
}

#[test]
fn tokens_and_registrations_are_kept_when_the_spelling_of_the_issuer_changes() {
    let options = || code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native));
    let mut network = spelled(options(), AS, AS);
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c1"}"#));
    let renewable = r#","refresh_token":"r1""#;
    network.posts(TOKEN, [token("t1", renewable), token("t2", ""), token("t3", "")]);
    network.run();
    respell(&mut network, SLASH, SLASH);
    network.accepted = vec!["Bearer t2".into()];
    network.call("a");
    let text = network.run();
    assert!(text.ends_with("tools/call a [Bearer t2]\ncall 1 done\n"), "{text}");
    assert_eq!((network.authorizations.len(), network.sent_to(REGISTER).len()), (1, 1), "{text}");
}

#[test]
fn a_client_that_gets_no_secret_is_public_whatever_its_method_is_called() {
    let members = format!(r#","registration_endpoint":"{REGISTER}""#);
    for method in ["client_secret_basic", "client_secret_post", "none"] {
        let options = code_bare().register_as(ClientMetadata::new("D", ApplicationType::Native));
        let mut network = TestNetwork::new(options);
        network.get(ASM, issuer(AS, &members));
        let answer = format!(r#"{{"client_id":"c1","token_endpoint_auth_method":"{method}"}}"#);
        network.post(REGISTER, Reply::new(201, &answer));
        network.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), token("t2", "")]);
        let text = network.run();
        assert!(text.contains("authorized by"), "{method}: {text}");
        let sent = network.last_to(TOKEN);
        assert_eq!(sent.form("client_id").as_deref(), Some("c1"));
        assert_eq!((sent.field("authorization"), sent.form("client_secret")), (None, None));
        // It renews its token in the same way.
        network.accepted = vec!["Bearer t2".into()];
        network.call("a");
        assert!(network.run().ends_with("call 1 done\n"));
        assert_eq!(network.last_to(TOKEN).form("client_secret"), None);
    }
}

#[test]
fn an_odd_member_of_a_token_does_not_cost_the_user_another_sign_in() {
    let odd = [
        r#","scope":["a","b"]"#,
        r#","scope":5,"refresh_token":{},"expires_in":"soon""#,
        r#","error":"","error_description":[],"id_token":7,"x":{"y":[]}"#,
    ];
    for members in odd {
        let mut network = TestNetwork::new(code());
        network.post(TOKEN, token("t1", members));
        let text = network.run();
        assert!(text.ends_with("server/discover [Bearer t1]\n"), "{members}: {text}");
    }
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, token("t1", odd[0]));
    assert!(network.run().contains("authorized by https://as.example for a b\n"));
}

#[test]
fn a_refusal_in_other_words_is_shown_without_secrets() {
    // Rule: [AUTHC-046].
    let registering =
        || code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native));
    let endpoint = format!(r#","registration_endpoint":"{REGISTER}""#);
    for (status, body, shown) in [
        (403, "Forbidden", ": Forbidden"),
        (400, r#"{"detail":"no such host"}"#, r#": {"detail":"no such host"}"#),
        (500, "a\r\n\u{1b}[31m", r": a \u{1b}[31m"),
        (502, "", ""),
    ] {
        let told = format!(" answers with status {status}{shown}\n");
        let mut network = TestNetwork::new(registering());
        network.get(ASM, issuer(AS, &endpoint));
        network.post(REGISTER, Reply::new(status, body));
        let text = network.run();
        assert!(text.contains(&[REGISTER, &*told].concat()), "{text}");
        let mut network = TestNetwork::new(code());
        network.post(TOKEN, Reply::new(status, body));
        let text = network.run();
        assert!(text.contains(&[TOKEN, &*told].concat()), "{text}");
    }
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, Reply::new(500, r#"{"error":"server_error","error_description":"why"}"#));
    assert!(network.run().contains("refused the request: server_error (why)\n"));
    // A server may repeat the request, or refuse it with a token.
    for body in ["no: BODY AUTHORIZATION", r#"{"access_token":"token-one","access_token":"b"}"#] {
        let registered = client("app", Some(AS), ClientSecret::Password("pass/word-one".into()));
        let mut network = TestNetwork::new(code_bare().registered(registered).expect("a client"));
        network.user = User::ComesBack(format!("/?code=code/one%2Btwo&state=STATE&iss={AS}"));
        network.network = Box::new(move |request| {
            request.form("grant_type")?;
            let shown = request.field("authorization").expect("a password");
            let body = body.replace("BODY", &request.body).replace("AUTHORIZATION", shown);
            Some(Reply::new(400, &body).into())
        });
        network.run();
        let told = network.failures[0].to_string();
        let sent = network.last_to(TOKEN);
        for secret in [
            sent.field("authorization").expect("a password"),
            "one",
            &*sent.form("code_verifier").expect("it"),
        ] {
            assert!(!told.contains(secret.trim_start_matches("Basic ")), "{told}");
        }
    }
}

#[test]
fn a_byte_order_mark_does_not_cost_the_answer() {
    let marked = |answer: Answer| match answer {
        Answer::Reply(reply) => {
            Answer::Reply(Reply { body: ["\u{feff}", &reply.body].concat(), ..reply })
        }
        answer => answer,
    };
    let options = code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native));
    let mut network = TestNetwork::new(options);
    network.get(PRM, marked(resource("")));
    network.get(ASM, marked(issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#))));
    network.post(REGISTER, marked(ok(r#"{"client_id":"c1"}"#)));
    network.post(TOKEN, marked(token("t1", "")));
    assert!(network.run().contains("authorized by https://as.example\n"));
}
