use alloc::format;
use alloc::string::ToString;

use super::*;

/// Formats each challenge as `scheme token68 name=value …`.
fn read(values: &[&str]) -> Vec<String> {
    let show = |it: Challenge| {
        let token68 = it.token68.map(|text| format!(" {text}")).unwrap_or_default();
        let params: String =
            it.params.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        [it.scheme, token68, params].concat()
    };
    Challenge::parse(values.iter().map(|it| it.as_bytes())).into_iter().map(show).collect()
}

fn token(value: &str) -> Option<BearerChallenge> {
    BearerChallenge::select(&Challenge::parse([value.as_bytes()]))
}

#[test]
fn every_form_of_rfc_9110_is_read() {
    // Rule: [AUTHC-015].
    for (value, challenges) in [
        ("Bearer", &["bearer"][..]),
        ("Bearer a=b", &["bearer a=b"]),
        ("BEARER  Realm = \"x\" ,\tScope=\"a b\"", &["bearer realm=x scope=a b"]),
        ("Basic realm=\"a, \\\"b\\\" \\\\c\"", &["basic realm=a, \"b\" \\c"]),
        ("Negotiate YWI+/c==, Bearer a=b", &["negotiate YWI+/c==", "bearer a=b"]),
        ("Negotiate, Bearer a=b, c=d, Basic", &["negotiate", "bearer a=b c=d", "basic"]),
        (", ,Bearer , a=b,, c=d,", &["bearer a=b c=d"]),
        ("Bearer a=\"\"", &["bearer a="]),
        ("Bearer a=", &["bearer a="]),
        (
            "Newauth realm=\"apps\", type=1, title=\"Login\", Basic realm=\"s\"",
            &["newauth realm=apps type=1 title=Login", "basic realm=s"],
        ),
        ("", &[]),
    ] {
        assert_eq!(read(&[value]), challenges, "{value}");
    }
}

#[test]
fn field_lines_of_one_name_are_one_list() {
    // Rule: [AUTHC-015].
    assert_eq!(read(&["Basic realm=x", "Bearer a=b"]), ["basic realm=x", "bearer a=b"]);
    assert_eq!(read(&["Bearer a=b", "c=d"]), ["bearer a=b c=d"]);
}

#[test]
fn a_malformed_challenge_does_not_hide_valid_ones() {
    // Rule: [AUTHC-015].
    for (value, challenges) in [
        ("Bearer a=b, @@", &["bearer a=b"][..]),
        ("Bearer a=b, c=\"d", &["bearer a=b"]),
        ("Bearer a=b, c=d e, f=g", &["bearer a=b"]),
        ("Bearer a=b, c=\"\u{1}\", Basic", &["bearer a=b", "basic"]),
        ("@@ \"x, Basic\", Bearer a=b", &["bearer a=b"]),
        ("Bearer a=b, c=d e=f, g=h", &["bearer a=b"]),
        ("Bearer a=b, c=\"d\"e=f, g=h", &["bearer a=b"]),
        ("Bearer a=b, c=\"d\" e, f=g", &["bearer a=b"]),
        ("Bearer a=b, c='d\"e', f=g", &["bearer a=b"]),
        ("Negotiate abc=, a=b, Bearer", &["negotiate abc=", "bearer"]),
        ("Bearer\"x\"", &["bearer"]),
        ("a=b, Bearer c=d", &["bearer c=d"]),
    ] {
        assert_eq!(read(&[value]), challenges, "{value}");
    }
}

#[test]
fn usual_wrong_spellings_of_values_are_read() {
    // Rule: [AUTHC-015].
    for (value, challenges) in [
        (
            "Bearer a=http://b/c?d=e, f=g, DPoP h=i",
            &["bearer a=http://b/c?d=e f=g", "dpop h=i"][..],
        ),
        ("Bearer a=https://b/, c=\"https://d\"", &["bearer a=https://b/ c=https://d"]),
        ("Bearer error=x, scope=files:b", &["bearer error=x scope=files:b"]),
        ("Bearer a='https://b', c=''", &["bearer a=https://b c="]),
        ("Bearer a='b', c='d e', f=g", &["bearer a=b"]),
        ("Bearer a='b, c=d", &["bearer a='b c=d"]),
        ("Bearer a=\"b\" c=\"d e\"\tf=g, Basic", &["bearer a=b c=d e f=g", "basic"]),
        ("Bearer a=\"b\" Basic c=\"d\"", &["bearer"]),
    ] {
        assert_eq!(read(&[value]), challenges, "{value}");
    }
}

#[test]
fn no_message_can_add_a_parameter_to_a_challenge() {
    let url = "resource_metadata=https://evil.example";
    for text in [
        format!("no, {url}"),
        format!("' {url}"),
        format!("', {url}, x='"),
        format!("no {url}"),
        format!("no\\\" {url}"),
        format!("no\\\", {url}"),
    ] {
        let value = format!("Bearer error=\"a\", error_description=\"{text}\", scope=\"b\"");
        let challenge = token(&value).expect("a challenge");
        assert_eq!(challenge.resource_metadata, None, "{value}");
        assert_eq!(challenge.scope.as_deref(), Some("b"), "{value}");
    }
    // Without quotes the rest of the challenge is not read.
    for text in [
        format!("The token is, {url}"),
        format!("bad {url}"),
        format!("x, y {url}"),
        format!("'a b', {url}"),
    ] {
        let value = format!("Bearer error=\"a\", error_description={text}");
        let challenge = token(&value).expect("a challenge");
        assert_eq!(challenge.resource_metadata, None, "{value}");
    }
}

#[test]
fn a_challenge_with_a_duplicate_parameter_is_skipped() {
    assert_eq!(read(&["Bearer a=b, A=c, d=e, Basic f=g"]), ["basic f=g"]);
    assert_eq!(read(&["Basic a=b, Bearer a=b"]), ["basic a=b", "bearer a=b"]);
}

#[test]
fn parsed_challenges_are_bounded() {
    assert_eq!(read(&[&"Basic,".repeat(CHALLENGES_MAX + 1)]).len(), CHALLENGES_MAX);
    let many: String = (0..=PARAMETERS_MAX).map(|at| format!("a{at}=b,")).collect();
    assert_eq!(read(&[&format!("Bearer {many} Basic")]), ["basic"]);
    let long = format!("Basic a=\"{}\"", "x".repeat(CHALLENGES_LENGTH_MAX));
    assert_eq!(read(&["Bearer", &long, "Basic"]), ["bearer"]);
}

#[test]
fn the_examples_of_the_specification_are_parsed() {
    // Rule: [AUTHC-015] [AUTHC-051].
    let challenge = token(
        "Bearer error=\"insufficient_scope\", scope=\"files:write\", \
         resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource\", \
         error_description=\"File write permission required for this operation\"",
    );
    let url = "https://mcp.example.com/.well-known/oauth-protected-resource";
    assert_eq!(
        challenge,
        Some(BearerChallenge {
            is_dpop: false,
            resource_metadata: Some(url.to_string()),
            scope: Some("files:write".to_string()),
            error: Some("insufficient_scope".to_string()),
            error_description: Some(
                "File write permission required for this operation".to_string()
            ),
        })
    );
}

#[test]
fn the_first_challenge_with_resource_metadata_is_selected() {
    let scheme = |value| token(value).map(|it| (it.is_dpop, it.resource_metadata.is_some()));
    let expect = Some((true, true));
    assert_eq!(scheme("Bearer scope=a, dpop resource_metadata=x"), expect);
    assert_eq!(scheme("Basic, Bearer, DPoP"), Some((false, false)));
    assert_eq!(scheme("Basic realm=x"), None);
}

#[test]
fn an_invalid_scope_is_ignored() {
    for value in ["Bearer scope=\"\"", "Bearer scope=\" \"", "Bearer scope=\"a\\\"b\""] {
        assert_eq!(token(value).map(|it| it.scope), Some(None), "{value}");
    }
}

proptest::proptest! {
    #[test]
    fn parsing_any_field_lines_does_not_panic(values: Vec<Vec<u8>>) {
        let _ = Challenge::parse(values.iter().map(|it| &**it));
    }

    #[test]
    fn a_valid_challenge_is_kept_with_any_text_after_it(rest in "[ -~]{0,40}") {
        let value = format!("Bearer resource_metadata=\"https://a/b\", Other , {rest}");
        let challenges = Challenge::parse([value.as_bytes()]);
        proptest::prop_assert_eq!(challenges[0].param("resource_metadata"), Some("https://a/b"));
    }
}
