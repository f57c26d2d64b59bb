use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;

const ALL: &str = r#"{
    "type": "object",
    "properties": {
        "region": {"type": "string", "description": "where", "x-mcp-header": "Region"},
        "query": {"type": "string"},
        "limit": {"x-mcp-header": "Limit", "type": ["integer", "null"]},
        "options": {
            "type": "object",
            "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry-Run"}}
        }
    },
    "required": ["region", "query"]
}"#;

fn parse_params(schema: &str) -> Result<HeaderParams, InvalidHeaderParam> {
    HeaderParams::from_schema(&RawJson::parse(schema).expect(schema))
}

fn all() -> HeaderParams {
    parse_params(ALL).expect("valid annotations")
}

fn fields(
    header_params: &HeaderParams,
    arguments: &str,
) -> Result<Vec<(String, String)>, UnsendableCall> {
    let arguments = RawJson::parse(arguments).expect(arguments);
    let fields = header_params.fields(&arguments)?;
    Ok(fields.map(|(name, value)| (name.into(), value.into())).collect())
}

fn check(arguments: &str, received: &[(&str, &str)]) -> Result<(), HeaderParamMismatch> {
    let received: Vec<_> = received.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    all().check(&RawJson::parse(arguments).expect(arguments), &received)
}

fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#)
}

#[test]
fn annotated_arguments_become_headers() {
    // Rule: [HDR-008] [HDR-019] [HDR-020] [HDR-021].
    let sent = |arguments| {
        let fields = fields(&all(), arguments).expect(arguments);
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
    };
    let arguments =
        r#"{"query":"q","options":{"x":[{}],"dry":true},"limit":-7,"region":"us west"}"#;
    let lines = ["Mcp-Param-Region: us west", "Mcp-Param-Limit: -7", "Mcp-Param-Dry-Run: true"];
    assert_eq!(sent(arguments), lines);
    assert_eq!(sent(r#"{"limit":42.0}"#), ["Mcp-Param-Limit: 42"]);
    assert_eq!(sent(r#"{"options":{"dry":false}}"#), ["Mcp-Param-Dry-Run: false"]);
    assert_eq!(sent(r#"{"\u0072egion":"a\nb"}"#), ["Mcp-Param-Region: =?base64?YQpi?="]);
    assert_eq!(sent(r#"{"region":"\u4e16"}"#), ["Mcp-Param-Region: =?base64?5LiW?="]);
    assert_eq!(sent(r#"{"region":""}"#), ["Mcp-Param-Region: "]);
}

#[test]
fn an_absent_value_has_no_header() {
    // Rule: [HDR-019] [HDR-029].
    for arguments in [
        "{}",
        "null",
        r#"{"region":null,"limit":null,"options":null}"#,
        r#"{"options":{}}"#,
        r#"{"options":[{"dry":true}],"dry":true,"other":{"region":"a"}}"#,
    ] {
        assert_eq!(fields(&all(), arguments), Ok(Vec::new()), "{arguments}");
        assert_eq!(check(arguments, &[]), Ok(()), "{arguments}");
    }
}

#[test]
fn a_value_is_converted_by_its_own_type() {
    let sent = |arguments| fields(&all(), arguments).expect(arguments);
    let arguments = r#"{"region":5,"limit":"6","options":{"dry":"yes"}}"#;
    let values: Vec<_> = sent(arguments).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["5", "6", "yes"]);
    // A value without a conversion has no header, and no header can match it.
    for arguments in [r#"{"limit":1.5}"#, r#"{"limit":[1]}"#, r#"{"limit":{}}"#] {
        assert_eq!(sent(arguments), []);
        let header = || "Mcp-Param-Limit".into();
        assert_eq!(check(arguments, &[]), Err(HeaderParamMismatch::Missing { header: header() }));
        let refused = check(arguments, &[("mcp-param-limit", "1.5")]);
        assert_eq!(refused, Err(HeaderParamMismatch::Differs { header: header() }));
    }
}

#[test]
fn an_unsafe_integer_is_not_sent_as_a_header() {
    // Rule: [HDR-014].
    assert!(fields(&all(), r#"{"limit":9007199254740991}"#).is_ok());
    for arguments in [r#"{"limit":9007199254740992}"#, r#"{"limit":-1e16}"#] {
        let error = fields(&all(), arguments).expect_err(arguments);
        let text = "the integer for Mcp-Param-Limit is not between -(2^53 - 1) and 2^53 - 1";
        assert_eq!(error.to_string(), text);
        let refused = check(arguments, &[("Mcp-Param-Limit", "9007199254740992")]);
        assert_eq!(
            refused,
            Err(HeaderParamMismatch::OutOfRange { header: "Mcp-Param-Limit".into() })
        );
    }
}

#[test]
fn matching_headers_are_accepted() {
    // Rule: [HDR-024] [HDR-030] [HDR-031].
    for (arguments, received) in [
        (r#"{"region":"eu"}"#, &[("Mcp-Param-Region", "eu")][..]),
        (r#"{"region":"eu"}"#, &[("MCP-PARAM-REGION", " \teu ")]),
        (r#"{"region":"eu"}"#, &[("mcp-param-region", "=?base64?ZXU=?=")]),
        (
            r#"{"region":"eu"}"#,
            &[("mcp-param-region", "=?base64?ZXU=?="), ("Mcp-Param-Region", "eu")],
        ),
        (r#"{"region":""}"#, &[("mcp-param-region", "")]),
        (r#"{"region":"é"}"#, &[("mcp-param-region", "=?base64?w6k=?=")]),
        (r#"{"limit":42}"#, &[("mcp-param-limit", "42.0")]),
        (r#"{"limit":42.0}"#, &[("mcp-param-limit", "42")]),
        (r#"{"options":{"dry":true}}"#, &[("mcp-param-dry-run", "true")]),
        ("{}", &[("Mcp-Param-Other", "\u{7f}"), ("Mcp-Param", "x"), ("Region", "x")]),
    ] {
        assert_eq!(check(arguments, received), Ok(()), "{arguments} {received:?}");
    }
}

#[test]
fn mismatched_headers_are_refused() {
    // Rule: [HDR-025] [HDR-027] [HDR-028] [HDR-030] [HDR-031].
    const EU: &str = r#"{"region":"eu"}"#;
    const REGION: &str = "mcp-param-region";
    const LIMIT: &str = "mcp-param-limit";
    let header = || "Mcp-Param-Region".into();
    let missing = HeaderParamMismatch::Missing { header: header() };
    let unexpected = HeaderParamMismatch::Unexpected { header: header() };
    let differs = HeaderParamMismatch::Differs { header: header() };
    let limit_differs = HeaderParamMismatch::Differs { header: "Mcp-Param-Limit".into() };
    let dry_differs = HeaderParamMismatch::Differs { header: "Mcp-Param-Dry-Run".into() };
    let invalid = |reason| HeaderParamMismatch::Invalid { header: header(), reason };
    for (arguments, received, mismatch) in [
        (EU, &[][..], &missing),
        (EU, &[(REGION, "us")], &differs),
        (EU, &[(REGION, "EU")], &differs),
        (EU, &[(REGION, "")], &differs),
        (EU, &[(REGION, "eu"), (REGION, "us")], &differs),
        (EU, &[(REGION, "=?BASE64?ZXU=?=")], &differs),
        (EU, &[(REGION, "=?base64?ZXU?=")], &invalid(InvalidFieldValue::Base64)),
        (EU, &[(REGION, "eu\0")], &invalid(InvalidFieldValue::Character)),
        ("{}", &[(REGION, "eu")], &unexpected),
        (r#"{"region":null}"#, &[(REGION, "null")], &unexpected),
        (r#"{"limit":42}"#, &[(LIMIT, "042")], &limit_differs),
        (r#"{"limit":42}"#, &[(LIMIT, "42.5")], &limit_differs),
        (r#"{"options":{"dry":true}}"#, &[("mcp-param-dry-run", "True")], &dry_differs),
    ] {
        let refused = check(arguments, received);
        assert_eq!(refused.as_ref(), Err(mismatch), "{arguments} {received:?}");
    }
}

#[test]
fn a_repeated_argument_is_refused() {
    // Rule: [HDR-025].
    for (arguments, member, header) in [
        (r#"{"region":"eu","region":"us"}"#, "region", "Mcp-Param-Region"),
        (r#"{"region":"eu","\u0072egion":"eu"}"#, "region", "Mcp-Param-Region"),
        (r#"{"region":"eu","region":null}"#, "region", "Mcp-Param-Region"),
        (r#"{"options":{"dry":true,"dry":true}}"#, "dry", "Mcp-Param-Dry-Run"),
        (r#"{"options":{"dry":true},"options":{}}"#, "options", "Mcp-Param-Dry-Run"),
        (r#"{"options":0,"options":{"dry":true}}"#, "options", "Mcp-Param-Dry-Run"),
    ] {
        let received = [("mcp-param-region", "eu"), ("mcp-param-dry-run", "true")];
        let refused = check(arguments, &received[usize::from(header.contains("Dry"))..]);
        assert_eq!(refused, Err(HeaderParamMismatch::Repeated { member: member.into() }));
        let unsent = fields(&all(), arguments);
        assert_eq!(unsent, Err(UnsendableCall::Ambiguous { header: header.into() }));
    }
    assert_eq!(check(r#"{"query":1,"query":2}"#, &[]), Ok(()));
}

#[test]
fn a_header_name_is_a_nonempty_token() {
    // Rule: [HDR-010] [HDR-011].
    let at = || String::from("/properties/a");
    let named = |name: &str| {
        parse_params(&property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#)))
    };
    for name in ["Method", "a", "!#$%&'*+-.^_`|~9"] {
        let header_params = named(&format!("\"{name}\"")).expect(name);
        assert_eq!(header_params.headers, [format!("Mcp-Param-{name}")]);
    }
    assert_eq!(named("\"\""), Err(InvalidHeaderParam::Empty { at: at() }));
    for name in ["null", "1", "[\"A\"]", "{}", "true"] {
        assert_eq!(named(name), Err(InvalidHeaderParam::NotText { at: at() }), "{name}");
    }
    for name in
        ["a b", "a:b", "a\\r\\nb", "a\\u0000", "é", "a/b", "\\\"a", "(a)", "a\\t", "a\u{7f}"]
    {
        let refused = named(&format!("\"{name}\""));
        assert!(matches!(refused, Err(InvalidHeaderParam::NotToken { .. })), "{name}");
    }
}

#[test]
fn header_names_are_unique_ignoring_case() {
    // Rule: [HDR-012].
    let schema = r#"{"properties":{
        "a":{"type":"string","x-mcp-header":"Region"},
        "b":{"properties":{"c":{"type":"string","x-mcp-header":"REGION"}}}}}"#;
    let fault = parse_params(schema).expect_err("a duplicate");
    let text = "the `x-mcp-header` \"REGION\" at \"/properties/b/properties/c\" is a duplicate";
    assert_eq!(fault.to_string(), text);
    let twice = property(r#"{"type":"string","x-mcp-header":"A","\u0078-mcp-header":"B"}"#);
    assert_eq!(
        parse_params(&twice),
        Err(InvalidHeaderParam::Repeated { at: "/properties/a".into() })
    );
}

#[test]
fn only_strings_integers_and_booleans_are_header_params() {
    // Rule: [HDR-013].
    let typed =
        |members: &str| parse_params(&property(&format!(r#"{{"x-mcp-header":"A"{members}}}"#)));
    for kind in
        [r#""string""#, r#""integer""#, r#""boolean""#, r#"["string"]"#, r#"["null","integer"]"#]
    {
        assert!(typed(&format!(r#","type":{kind}"#)).is_ok(), "{kind}");
    }
    for members in [
        "",
        r#","type":"number""#,
        r#","type":"object""#,
        r#","type":"array""#,
        r#","type":"null""#,
        r#","type":["null"]"#,
        r#","type":[]"#,
        r#","type":["string","integer"]"#,
        r#","type":["string","number"]"#,
        r#","type":[["string"]]"#,
        r#","type":{"a":"string"}"#,
        r#","type":"String""#,
        r#","type":"string","type":"number""#,
        r#","enum":["a"]"#,
        r##","$ref":"#/$defs/a""##,
    ] {
        let fault = typed(members);
        assert_eq!(
            fault,
            Err(InvalidHeaderParam::Type { at: "/properties/a".into() }),
            "{members}"
        );
    }
}

#[test]
fn an_annotation_must_be_reachable_only_through_properties() {
    // Rule: [HDR-015].
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    let inner = format!(r#"{{"properties":{{"a":{annotated}}}}}"#);
    assert_eq!(parse_params(annotated), Err(InvalidHeaderParam::Unreachable { at: "".into() }));
    for keyword in [
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "unevaluatedItems",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "contentSchema",
        "x-unknown",
        "$ref",
        "title",
    ] {
        for schema in [annotated.into(), inner.clone(), format!("[true,{inner}]")] {
            for text in [
                format!(r#"{{"{keyword}":{schema}}}"#),
                property(&format!(r#"{{"{keyword}":{schema}}}"#)),
            ] {
                let fault = parse_params(&text);
                assert!(matches!(fault, Err(InvalidHeaderParam::Unreachable { .. })), "{text}");
            }
        }
    }
    for names in [
        "$defs",
        "definitions",
        "patternProperties",
        "dependentSchemas",
        "dependencies",
        "dependentRequired",
    ] {
        let text = property(&format!(r#"{{"{names}":{{"x/y":{inner}}}}}"#));
        let at = format!("/properties/a/{names}/x~1y/properties/a");
        assert_eq!(parse_params(&text), Err(InvalidHeaderParam::Unreachable { at }));
    }
    let list = format!(r#"{{"properties":[{annotated}]}}"#);
    let at = "/properties/0".into();
    assert_eq!(parse_params(&list), Err(InvalidHeaderParam::Unreachable { at }));
}

#[test]
fn look_alike_annotations_are_ignored() {
    // Rule: [HDR-015].
    let annotated = r#"{"properties":{"a":{"type":"number","x-mcp-header":""}}}"#;
    for text in [
        String::from(
            r#"{"properties":{"x-mcp-header":{"type":"string"}},"required":["x-mcp-header"]}"#,
        ),
        String::from(
            r#"{"$defs":{"x-mcp-header":true},"dependentRequired":{"x-mcp-header":["a"]}}"#,
        ),
        String::from(r#"{"properties":{"a":{"description":"x-mcp-header","maximum":1e999}}}"#),
        format!(r#"{{"default":{annotated},"examples":[{annotated}]}}"#),
        property(&format!(r#"{{"const":{annotated},"enum":[{annotated}]}}"#)),
        String::from(r#"{"title":"\u00e9","minLength":1,"x":-1.5,"y":null,"z":[[],"a"]}"#),
        String::from("true"),
    ] {
        assert_eq!(parse_params(&text), Ok(HeaderParams::default()), "{text}");
        assert!(parse_params(&text).is_ok_and(|header_params| header_params.is_empty()));
    }
    let named = r#"{"properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A"},
        "properties":{"properties":{"const":{"type":"string","x-mcp-header":"B"}}}}}"#;
    let header_params = parse_params(named).expect("two annotations");
    let sent =
        fields(&header_params, r#"{"x-mcp-header":"1","properties":{"const":"2"}}"#).expect("two");
    assert_eq!(sent, [("Mcp-Param-A".into(), "1".into()), ("Mcp-Param-B".into(), "2".into())]);
}

#[test]
fn the_number_of_annotations_is_limited() {
    let many = |count| {
        let one = |at| format!(r#""p{at}":{{"type":"string","x-mcp-header":"H{at}"}}"#);
        let all: Vec<_> = (0..count).map(one).collect();
        parse_params(&format!(r#"{{"properties":{{{}}}}}"#, all.join(",")))
    };
    assert!(
        many(MIRRORS_MAX).is_ok_and(|header_params| header_params.headers.len() == MIRRORS_MAX)
    );
    assert_eq!(many(MIRRORS_MAX + 1), Err(InvalidHeaderParam::TooMany));
}

#[test]
fn deep_schemas_are_accepted_unless_annotated() {
    let deep = |levels: usize, inner: &str| {
        format!("{}{inner}{}", r#"{"properties":{"a":"#.repeat(levels), "}}".repeat(levels))
    };
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    let header_params = parse_params(&deep(60, annotated)).expect("an annotation far down");
    let arguments = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    assert_eq!(fields(&header_params, &arguments), Ok([("Mcp-Param-A".into(), "1".into())].into()));
    assert_eq!(parse_params(&deep(5000, annotated)), Err(InvalidHeaderParam::Unreadable));
    assert_eq!(parse_params(&deep(5000, "true")), Ok(HeaderParams::default()));
}

proptest::proptest! {
    #[test]
    fn a_server_accepts_client_messages(
        region in proptest::option::of("\\PC{0,12}| ?[a-z\t]{0,3}\n?"),
        limit in proptest::option::of(-number::INTEGER_MAX..=number::INTEGER_MAX),
        dry: Option<bool>,
    ) {
        let arguments = RawJson::from_serialize(&serde_json::json!({
            "region": region, "limit": limit, "options": { "dry": dry },
        })).expect("JSON");
        let header_params = all();
        let fields: Vec<_> = header_params.fields(&arguments).expect("values in range").collect();
        let count = [region.is_some(), limit.is_some(), dry.is_some()];
        proptest::prop_assert_eq!(fields.len(), count.into_iter().filter(|it| *it).count());
        let received: Vec<_> =
            fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        proptest::prop_assert_eq!(header_params.check(&arguments, &received), Ok(()));
    }

    #[test]
    fn no_schema_panics_the_parser(text in "([{}\\[\\],:]|\"(a|x-mcp-header|properties|type|string)\"|1e999|null){0,24}") {
        if let Ok(schema) = RawJson::parse(&text) {
            let _ = HeaderParams::from_schema(&schema);
        }
    }
}
