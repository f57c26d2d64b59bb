use alloc::format;
use alloc::string::String;

use proptest::prelude::*;

use super::*;
use crate::Principal;
use crate::jsonrpc::RawJson;

const NOW: u64 = 1_785_000_000;
const CALL: &str = r#"{"name":"book","arguments":{"table":4,"when":{"day":1,"hour":20}}}"#;

fn seal() -> Seal {
    Seal::new([7; 32])
}

fn binding(params: &str) -> Binding<'static> {
    Binding::new("tools/call", &RawJson::parse(params).unwrap())
}

fn sealed(state: &str) -> String {
    seal().close(state, &binding(CALL), NOW + 60).unwrap()
}

#[test]
fn a_state_is_opened_before_its_expiry() {
    assert_eq!(seal().open(&sealed("step 2"), &binding(CALL), NOW), Ok("step 2".into()));
    assert_eq!(seal().open(&sealed(""), &binding(CALL), NOW + 59), Ok(String::new()));
}

#[test]
fn a_state_is_refused_from_its_expiry_on() {
    // Rule: [MRTR-007].
    let state = sealed("step 2");
    for late in [NOW + 60, NOW + 61, u64::MAX] {
        assert_eq!(seal().open(&state, &binding(CALL), late), Err(Unsealable::Expired));
    }
    // A caller that cannot open the state does not learn that it has expired.
    let other = binding(r#"{"name":"cancel"}"#);
    assert_eq!(seal().open(&state, &other, NOW + 61), Err(Unsealable::Forged));
}

#[test]
fn a_state_of_another_principal_is_refused() {
    // Rule: [MRTR-007] [SEC-009] [SEC-010] [ELIC-026].
    let (ann, ben, nameless) = (Principal::new("ann"), Principal::new("ben"), Principal::new(""));
    let all = [None, Some(&ann), Some(&ben), Some(&nameless)];
    for of in all {
        let state = seal().close("s", &binding(CALL).principal(of), NOW + 60).unwrap();
        for by in all {
            let opened = seal().open(&state, &binding(CALL).principal(by), NOW);
            let expected = if of == by { Ok("s".into()) } else { Err(Unsealable::Forged) };
            assert_eq!(opened, expected);
        }
    }
}

#[test]
fn a_state_of_another_request_is_refused() {
    // Rule: [MRTR-007] [MRTR-015].
    let state = sealed("s");
    let others = [
        r#"{"name":"cancel","arguments":{"table":4,"when":{"day":1,"hour":20}}}"#,
        r#"{"name":"book","arguments":{"table":4,"when":{"day":20,"hour":1}}}"#,
        r#"{"name":"book","arguments":{"table":"4","when":{"day":1,"hour":20}}}"#,
        r#"{"name":"book","arguments":{"table":4,"when":{"day":1},"hour":20}}"#,
        r#"{"name":"book","arguments":{"table":4,"when":{"day":1,"hour":20},"_meta":{}}}"#,
        r#"{"name":"book"}"#,
        "{}",
    ];
    for other in others {
        assert_eq!(seal().open(&state, &binding(other), NOW), Err(Unsealable::Forged), "{other}");
    }
    let of_prompts = Binding::new("prompts/get", &RawJson::parse(CALL).unwrap());
    assert_eq!(seal().open(&state, &of_prompts, NOW), Err(Unsealable::Forged));
}

#[test]
fn a_retry_opens_the_state_regardless_of_its_formatting() {
    // Rule: [MRTR-014].
    let state = sealed("s");
    let retries = [
        r#"{"name":"book","arguments":{"table":4,"when":{"day":1,"hour":20}},
            "requestState":"x","inputResponses":{"a":{}},"_meta":{"progressToken":2}}"#,
        r#"{"arguments":{ "when":{"hour":20,"day":1}, "table":4 },"n\u0061me":"b\u006fok"}"#,
    ];
    for retry in retries {
        assert_eq!(seal().open(&state, &binding(retry), NOW), Ok("s".into()), "{retry}");
    }
}

#[test]
fn similar_values_are_distinguished() {
    let alike = [
        r#"{"a":[[],[]]}"#,
        r#"{"a":[[[]]]}"#,
        r#"{"a":["",""]}"#,
        r#"{"a":[""]}"#,
        r#"{"a":{"":""}}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        r#"{"a":false}"#,
        r#"{"a":0}"#,
        r#"{"a":-1}"#,
        r#"{"a":18446744073709551615}"#,
        r#"{"a":0.5}"#,
        r#"{"a":1e999}"#,
        r#"{"a":2e999}"#,
        r#"{"a":0,"a":1}"#,
        r#"{"a":1,"a":0}"#,
        r#"["a"]"#,
        r#""a""#,
    ];
    for (at, one) in alike.iter().enumerate() {
        let state = seal().close("s", &binding(one), NOW + 60).unwrap();
        for (other_at, other) in alike.iter().enumerate() {
            let opened = seal().open(&state, &binding(other), NOW).is_ok();
            assert_eq!(opened, at == other_at, "{one} and {other}");
        }
    }
}

#[test]
fn a_number_out_of_range_is_bound_as_text() {
    let state = seal().close("s", &binding(r#"{"a":1e999}"#), NOW + 60).unwrap();
    let retry = binding(r#"{"requestState":"x","a":1e999}"#);
    assert_eq!(seal().open(&state, &retry, NOW), Ok("s".into()));
}

#[test]
fn an_older_key_opens_and_a_dropped_key_does_not() {
    // Rule: [MRTR-006].
    let state = sealed("s");
    let rotated = Seal::new([8; 32]).with_previous_keys([[9; 32], [7; 32]]);
    assert_eq!(rotated.open(&state, &binding(CALL), NOW), Ok("s".into()));
    let later = Seal::new([8; 32]).with_previous_keys([[9; 32]]);
    assert_eq!(later.open(&state, &binding(CALL), NOW), Err(Unsealable::Forged));
    let new = rotated.close("s", &binding(CALL), NOW + 60).unwrap();
    assert_eq!(seal().open(&new, &binding(CALL), NOW), Err(Unsealable::Forged));
}

#[test]
fn text_that_was_never_sealed_is_malformed() {
    // Rule: [MRTR-006].
    let endless = "A".repeat(SEALED_LENGTH_MAX + 1);
    for text in
        ["", "A", "AQ", "step 2", "====", "\u{e9}", &endless, &sealed("s").replace('A', "+")]
    {
        assert_eq!(seal().open(text, &binding(CALL), NOW), Err(Unsealable::Malformed), "{text}");
    }
    assert_eq!(seal().open(&"A".repeat(80), &binding(CALL), NOW), Err(Unsealable::Malformed));
}

#[test]
fn the_longest_state_is_sealed_and_a_longer_one_is_not() {
    let longest = "s".repeat(STATE_LENGTH_MAX);
    assert_eq!(seal().open(&sealed(&longest), &binding(CALL), NOW), Ok(longest.clone()));
    let refused = seal().close(&format!("{longest}s"), &binding(CALL), NOW + 60);
    assert!(refused.is_err_and(|error| format!("{error}").contains("65537")));
}

#[test]
fn the_format_is_stable() {
    // Made with another implementation of HMAC and SHA-256.
    let known = "AQAAAABqZPB8U1H8NKVVP63LoVOk1pN7lVGw8ALy-1xW-fOo7AL2QIhzdGVwIDI";
    let params = RawJson::parse(r#"{"name":"book","arguments":{"table":4}}"#).unwrap();
    let ann = Principal::new("ann");
    let binding = Binding::new("tools/call", &params).principal(Some(&ann));
    assert_eq!(seal().close("step 2", &binding, NOW + 60).unwrap(), known);
    assert_eq!(seal().open(known, &binding, NOW), Ok("step 2".into()));
}

#[test]
fn no_key_is_in_the_debug_output() {
    let shown = format!("{:?}", Seal::new([7; 32]).with_previous_keys([[9; 32]]));
    assert_eq!(shown, "Seal { previous: 1, .. }");
}

proptest! {
    #[test]
    fn every_state_comes_back(state in ".*", key: [u8; 32], expires in 1_u64..) {
        let seal = Seal::new(key);
        let sealed = seal.close(&state, &binding(CALL), expires).unwrap();
        prop_assert!(sealed.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        prop_assert_eq!(seal.open(&sealed, &binding(CALL), expires - 1), Ok(state));
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(state in ".{0,40}", at: prop::sample::Index, bit in 0_u32..7) {
        // Rule: [MRTR-006].
        let mut bytes = sealed(&state).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert!(seal().open(&changed, &binding(CALL), NOW).is_err());
    }

    #[test]
    fn no_flipped_bit_below_the_encoding_goes_unnoticed(
        state in ".{0,40}", at: prop::sample::Index, bit in 0_u32..8,
    ) {
        // Rule: [MRTR-006].
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed(&state)).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let changed = URL_SAFE_NO_PAD.encode(bytes);
        let expected = if at == 0 { Unsealable::Malformed } else { Unsealable::Forged };
        prop_assert_eq!(seal().open(&changed, &binding(CALL), NOW), Err(expected));
    }

    #[test]
    fn nothing_cut_off_or_added_goes_unnoticed(
        state in ".{0,40}", at: prop::sample::Index, more in "[A-Za-z0-9_-]{1,9}",
    ) {
        // Rule: [MRTR-006].
        let whole = sealed(&state);
        let cut = &whole[..at.index(whole.len())];
        prop_assert!(seal().open(cut, &binding(CALL), NOW).is_err());
        let (longer, later) = (format!("{whole}{more}"), format!("{more}{whole}"));
        prop_assert!(seal().open(&longer, &binding(CALL), NOW).is_err());
        prop_assert!(seal().open(&later, &binding(CALL), NOW).is_err());
    }
}
