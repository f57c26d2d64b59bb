//! Random behavior of servers, users and clocks.

use core::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

use crate::answers::{Answer, Reply, challenge, error, issuer, ok, resource, status, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code_bare, password,
};

/// Returns a response that any server may give at any time.
fn answer(choice: u8) -> Answer {
    match choice % 20 {
        0 => status(401),
        1 => challenge(401, r#"Bearer scope="a""#),
        2 => challenge(403, r#"Bearer error="insufficient_scope", scope="b""#),
        3 => status(404),
        4 => status(500),
        5 => Answer::Fails(ExchangeFailure::Broken),
        6 => Answer::Silence,
        7 => ok(&"{".repeat(70_000)),
        8 => error(400, "invalid_grant"),
        9 => error(401, "invalid_client"),
        10 => token("t1", ""),
        11 => token("t2", r#","refresh_token":"r","expires_in":40,"scope":"a b""#),
        12 => resource(""),
        13 => ok(&format!(
            r#"{{"resource":"{MCP}","authorization_servers":["https://new.example","{AS}"]}}"#
        )),
        14 => issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)),
        15 => issuer("https://new.example", ""),
        16 => Reply::new(201, r#"{"client_id":"c","client_secret":"s"}"#).into(),
        17 => Reply::new(302, "").field("location", "/x").into(),
        18 => ok(""),
        _ => Reply::new(200, "{}").field("dpop-nonce", "n").into(),
    }
}

proptest! {
    #[test]
    fn every_call_ends_and_no_secret_is_leaked(
        choices in vec(any::<u8>(), 6..40),
        steps in vec((0_u8..8, any::<u8>()), 1..30),
    ) {
        let app = client("app", Some(AS), password("hush"));
        let mut network = TestNetwork::new(code_bare().registered(app).expect("a client"));
        let mut choices = choices.into_iter().cycle();
        let mut next = || answer(choices.next().unwrap_or_default());
        let places = [PRM, ASM, "https://mcp.example/x", "https://as.example/x"];
        network.run();
        for (step, choice) in steps {
            match step {
                0 => network.get(places[usize::from(choice) % places.len()], next()),
                1 => network.post(TOKEN, next()),
                2 => {
                    let said = next();
                    network.mcp = Box::new(move |_| (choice % 3 > 0).then(|| said.clone()));
                }
                3 => network.accepted = vec![format!("Bearer t{}", choice % 3)],
                4 => network.user = match choice % 4 {
                    0 => User::Stays,
                    1 => User::Declines,
                    2 => User::ComesBack("/?state=STATE".into()),
                    _ => User::SignsIn(format!("&iss={AS}")),
                },
                5 => drop(network.advance(Duration::from_secs(choice.into()))),
                6 if choice < 16 => network.auth.forget(network.now),
                _ if network.is_open() => {
                    network.call("a");
                }
                _ => network.reconnect(),
            }
            network.run();
        }
        let mut text = network.advance(Duration::from_secs(7200));
        network.auth.close();
        text += &network.run();
        // Every authorization has ended: no deadline is pending.
        proptest::prop_assert_eq!(network.auth.poll_timeout(), None);
        proptest::prop_assert_eq!(network.locked, None);
        let elsewhere = network.bytes_to("https://new.example") + &network.bytes_to("https://mcp.example");
        proptest::prop_assert!(!elsewhere.contains("hush") && !elsewhere.contains("aHVzaA"));
        proptest::prop_assert!(!network.bytes_to(AS).contains("Bearer"));
    }
}
