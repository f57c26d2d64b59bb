use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;

fn single(text: &str) -> Result<Message<'_>, Malformed> {
    match parse(text.as_bytes(), ParseLimits::default())? {
        Frame::Single(message) => Ok(message),
        Frame::Batch(_) => panic!("a batch: {text}"),
    }
}

fn broken(text: &str) -> Malformed {
    match parse(text.as_bytes(), ParseLimits::default()) {
        Err(malformed) => malformed,
        Ok(frame) => panic!("accepted {text} as {frame:?}"),
    }
}

fn batch(text: &str) -> Vec<Result<Message<'_>, Malformed>> {
    match parse(text.as_bytes(), ParseLimits::default()) {
        Ok(Frame::Batch(batch)) => batch.collect(),
        other => panic!("no batch: {other:?}"),
    }
}

#[test]
fn a_request_borrows_from_its_frame() {
    let text = r#" { "jsonrpc" : "2.0", "id": 7, "method":"tools/call", "params" : {"a": [1]} } "#;
    let Ok(Message::Request(request)) = single(text) else { panic!("not a request") };
    assert_eq!(request.id, RequestId::Number(7));
    assert!(matches!(request.method, Cow::Borrowed("tools/call")));
    assert_eq!(request.params, Some(RawJson::trusted(r#"{"a": [1]}"#)));
}

#[test]
fn the_usual_start_reads_like_any_other_spelling() {
    for rest in [
        "",
        "}",
        ",",
        " }",
        "1}",
        r#""id":1}"#,
        r#""id":1,}"#,
        r#" "id" : 1 , "method":"m" } "#,
        r#""method":"m"}"#,
        r#""method":"m","jsonrpc":"2.0","id":1}"#,
        r#""method":"m","id":1,"json\u0072pc":"1.0"}"#,
        r#""result":{},"id":"a"}"#,
        r#""error":{"code":1,"message":""},"id":null}"#,
    ] {
        let usual = format!(r#"{{"jsonrpc":"2.0",{rest}"#);
        for other in [r#"{"jsonrpc":"2\u002e0","#, r#"{"jsonrpc": "2.0","#, r#"{ "jsonrpc":"2.0","#]
        {
            let moved = other.len() + rest.len() - usual.len();
            let other = format!("{other}{rest}");
            let expected = match single(&other) {
                Err(Malformed { reason: Reason::NotJson { at }, id, shape }) => {
                    Err(Malformed { reason: Reason::NotJson { at: at - moved }, id, shape })
                }
                read => read,
            };
            assert_eq!(format!("{:?}", single(&usual)), format!("{expected:?}"), "{other}");
        }
        let (element, other) = (format!("[{usual}]"), format!(r#"[{{"jsonrpc": "2.0",{rest}]"#));
        if single(&usual).is_ok() {
            assert_eq!(format!("{:?}", batch(&element)), format!("{:?}", batch(&other)));
        }
    }
}

#[test]
fn ids_keep_their_type() {
    // Rule: [RPC-002] [RPC-006].
    for (text, id) in [
        ("1", RequestId::Number(1)),
        ("-9223372036854775808", RequestId::Number(i64::MIN)),
        ("9223372036854775807", RequestId::Number(i64::MAX)),
        // Languages with one number type.
        ("3.0", RequestId::Number(3)),
        ("1e3", RequestId::Number(1000)),
        ("-9007199254740993.0", RequestId::Number(-9_007_199_254_740_993)),
        (r#""1""#, RequestId::from("1")),
        (r#""\u0061\n""#, RequestId::from("a\n")),
        (r#""""#, RequestId::from("")),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#);
        let Ok(Message::Request(request)) = single(&text) else { panic!("refused {text}") };
        assert_eq!(request.id, id);
    }
}

#[test]
fn other_ids_are_refused_each_for_its_reason() {
    // Rule: [RPC-002] [RPC-003] [RPC-012].
    for (text, reason) in [
        ("null", Reason::IdNull),
        ("1.5", Reason::IdFractional),
        ("1e-3", Reason::IdFractional),
        ("1e300", Reason::IdFractional),
        ("9223372036854775808", Reason::IdOutOfRange),
        ("true", Reason::IdWrongType),
        ("{}", Reason::IdWrongType),
        ("[1]", Reason::IdWrongType),
    ] {
        let malformed = broken(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#));
        assert_eq!(malformed, Malformed { reason, id: None, shape: Shape::Request });
        assert_eq!(malformed.code(), ErrorCode::INVALID_REQUEST);
        assert!(malformed.answer().is_some());
    }
}

#[test]
fn an_id_beyond_the_limit_is_refused_in_a_response_with_that_id() {
    // Rule: [RPC-002] [RPC-006] [RPC-009].
    let limits = ParseLimits::default();
    let limit = limits.id_length;
    assert!(limit >= 1024);
    // An escape counts with its written length.
    let escaped = |count: usize| r"\u00e9".repeat(count);
    for (text, reads) in [
        ("x".repeat(65), true),
        ("x".repeat(limit), true),
        ("x".repeat(limit + 1), false),
        ("x".repeat(100_000), false),
        (escaped(limit / 6), true),
        (escaped(limit / 6 + 1), false),
    ] {
        let id = RequestId::from(&*text.replace(r"\u00e9", "\u{e9}"));
        for (members, shape) in
            [(r#""method":"ping""#, Shape::Request), (r#""result":{}"#, Shape::Response)]
        {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":"{text}",{members}}}"#);
            match (parse(frame.as_bytes(), limits), shape) {
                (Ok(Frame::Single(Message::Request(request))), Shape::Request) if reads => {
                    assert_eq!(request.id, id);
                }
                (Ok(Frame::Single(Message::Response(response))), Shape::Response) if reads => {
                    assert_eq!(response.id, Some(id.clone()));
                }
                (Err(malformed), _) if !reads => {
                    let reason = Reason::IdTooLong { limit };
                    assert_eq!(malformed, Malformed { reason, id: Some(id.clone()), shape });
                }
                (parsed, _) => panic!("{parsed:?} for an id of {} bytes", text.len()),
            }
        }
    }
}

#[test]
fn requests_that_break_a_rule_are_answered_under_their_id() {
    // Rule: [RPC-001] [RPC-002] [RPC-011] [RPC-017].
    for (text, reason) in [
        (r#"{"id":1,"method":"m"}"#, Reason::JsonrpcMissing),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Reason::JsonrpcWrong),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, Reason::JsonrpcWrong),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, Reason::MethodNotString),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Reason::MethodNotString),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, Reason::ParamsNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":7}"#, Reason::ParamsNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, Reason::MethodAndOutcome),
        (r#"{"jsonrpc":"2.0","id":1}"#, Reason::Purposeless),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#,
            Reason::DuplicateMember("method"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#,
            Reason::DuplicateMember("method"),
        ),
    ] {
        let malformed = broken(text);
        assert_eq!(malformed.reason, reason, "{text}");
        assert_eq!(malformed.id, Some(RequestId::Number(1)), "{text}");
        let answer = malformed.answer().expect("a request is answered");
        assert_eq!(answer.code, ErrorCode::INVALID_REQUEST);
        assert_eq!(answer.message, reason.to_string());
    }
}

#[test]
fn repeated_members_keep_the_id_if_it_is_unambiguous() {
    // Rule: [RPC-009].
    for (members, repeated, id) in [
        (r#""id":1,"id":2,"method":"m""#, "id", None),
        (r#""id":1,"method":"m","id":2"#, "id", None),
        (r#""id":1,"id":"1","method":"m""#, "id", None),
        (r#""id":1,"\u0069d":2,"method":"m""#, "id", None),
        // Another repeated member does not make the id unambiguous again.
        (r#""id":1,"id":2,"method":"m","method":"n""#, "method", None),
        (r#""id":1,"id":2,"id":1,"method":"m""#, "id", None),
        (r#""id":1,"id":1,"method":"m""#, "id", Some(1)),
        (r#""method":"m","method":"n","id":1,"id":1"#, "id", Some(1)),
        (r#""method":"m","id":1,"method":"n","params":{},"params":{}"#, "params", Some(1)),
    ] {
        let malformed = broken(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
        assert_eq!(malformed.reason, Reason::DuplicateMember(repeated), "{members}");
        assert_eq!(malformed.id, id.map(RequestId::Number), "{members}");
    }
}

#[test]
fn a_broken_notification_is_never_answered() {
    // Rule: [RPC-013].
    let malformed = broken(r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#);
    assert_eq!(malformed.shape, Shape::Notification);
    assert_eq!(malformed.answer(), None);
}

#[test]
fn an_object_that_is_not_a_message_is_an_invalid_request() {
    // Rule: [RPC-001] [RPC-017].
    for text in [r#"{"foo":"boo"}"#, "{}", r#"{"method":"m"}"#, r#"{"jsonrpc":"2.0","method":1}"#] {
        let answer = broken(text).answer().expect("it is answered");
        assert_eq!(answer.code, ErrorCode::INVALID_REQUEST, "{text}");
    }
    for text in ["1", "\"a\"", "null", " true "] {
        assert_eq!(broken(text).reason, Reason::NotAnObject);
        assert_eq!(broken(text).code(), ErrorCode::INVALID_REQUEST);
    }
}

#[test]
fn invalid_json_is_a_parse_error_with_the_id_if_there_is_one() {
    // Rule: [RPC-014] [RPC-017].
    for (text, at, id) in [
        ("", 0, None),
        (r#"{"jsonrpc":"2.0","id":1"#, 23, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,}"#, 24, Some(1)),
        (r#"{"id":1}x"#, 8, Some(1)),
        (r#"{"id":1} {}"#, 9, Some(1)),
        ("[", 1, None),
        ("[{]", 2, None),
    ] {
        let malformed = broken(text);
        assert_eq!(malformed.reason, Reason::NotJson { at }, "{text}");
        assert_eq!(malformed.code(), ErrorCode::PARSE_ERROR);
        assert_eq!((malformed.id, malformed.shape), (id.map(RequestId::Number), Shape::Unknown));
    }
    let malformed = parse(b"{\"a\":\"\xff\"}", ParseLimits::default()).expect_err("not UTF-8");
    assert_eq!(malformed.reason, Reason::NotUtf8 { at: 6 });
    assert_eq!(malformed.code(), ErrorCode::PARSE_ERROR);
}

#[test]
fn a_response_carries_exactly_one_outcome() {
    // Rule: [RPC-007] [RPC-010].
    let Ok(Message::Response(response)) = single(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#)
    else {
        panic!("refused")
    };
    assert_eq!(response.id, Some(RequestId::from("a")));
    assert_eq!(response.outcome, Ok(RawJson::trusted(r#"{"x":1}"#)));
    for (text, reason) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, Reason::ResultAndError),
        (r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#, Reason::ResultNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Reason::ResultNotObject),
        (r#"{"jsonrpc":"2.0","result":{}}"#, Reason::IdMissing),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Reason::IdNull),
        (r#"{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":""}}"#, Reason::IdFractional),
        (r#"{"id":1,"result":{}}"#, Reason::JsonrpcMissing),
    ] {
        let malformed = broken(text);
        assert_eq!(malformed.reason, reason, "{text}");
        assert_eq!(malformed.answer(), None, "{text}");
    }
}

#[test]
fn null_is_absence_in_every_member_that_may_be_absent() {
    let request = Message::Request(RequestMessage {
        id: RequestId::Number(1),
        method: Cow::Borrowed("m"),
        params: None,
    });
    let result = Message::Response(ResponseMessage {
        id: Some(RequestId::Number(1)),
        outcome: Ok(RawJson::EMPTY_OBJECT),
    });
    let error = ErrorObject::new(ErrorCode(7), "no");
    let refusal =
        Message::Response(ResponseMessage { id: Some(RequestId::Number(1)), outcome: Err(error) });
    for (members, expected) in [
        (r#""method":"m","params":null"#, &request),
        (r#""method":"m","params":null,"result":null,"error":null"#, &request),
        (r#""error":null,"result":{}"#, &result),
        (r#""method":null,"params":null,"result":{},"error":null"#, &result),
        (r#""result":null,"error":{"code":7.0,"message":"no","data":null}"#, &refusal),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#);
        let read = single(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let read = format!("{read:?}").replace("data: Some(null)", "data: None");
        assert_eq!(read, format!("{expected:?}"), "{text}");
    }
    for (members, reason, shape) in [
        (r#""result":null,"error":null"#, Reason::ResultNotObject, Shape::Response),
        (r#""method":null,"result":{},"error":{}"#, Reason::ResultAndError, Shape::Response),
        (r#""method":"m","result":{},"error":null"#, Reason::MethodAndOutcome, Shape::Request),
    ] {
        let malformed = broken(&format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#));
        assert_eq!((malformed.reason, malformed.shape), (reason, shape), "{members}");
    }
}

#[test]
fn a_byte_order_mark_is_ignored_once() {
    let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    assert!(matches!(single(text), Ok(Message::Response(_))));
    assert_eq!(batch("\u{feff} [1]").len(), 1);
    let marks = "\u{feff}".repeat(100_000);
    for text in [&marks, &format!("{marks}{{}}"), "\u{feff}1", "\u{feff}"] {
        assert_eq!(broken(text).reason, Reason::NotJson { at: 0 });
    }
}

#[test]
fn an_error_has_an_integer_code_and_a_string_message() {
    // Rule: [RPC-008] [RPC-009].
    for (id, expected) in [(r#""id":3,"#, Some(3)), ("", None), (r#""id":null,"#, None)] {
        let text = format!(
            r#"{{"jsonrpc":"2.0",{id}"error":{{"message":"n\u006f","x":[0],"code":-32002,"data":null}}}}"#
        );
        let Ok(Message::Response(response)) = single(&text) else { panic!("refused {text}") };
        assert_eq!(response.id, expected.map(RequestId::Number));
        let error = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "no").with_data(RawJson::NULL);
        assert_eq!(response.outcome, Err(error));
    }
    for error in [
        "null",
        "[]",
        "\"no\"",
        "{}",
        r#"{"code":1}"#,
        r#"{"message":"m"}"#,
        r#"{"code":"1","message":"m"}"#,
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"code":1,"message":2}"#,
        r#"{"code":1,"code":2,"message":"m"}"#,
    ] {
        let malformed = broken(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
        assert_eq!(malformed.reason, Reason::ErrorMalformed, "{error}");
        assert_eq!(malformed.answer(), None);
    }
}

#[test]
fn unknown_members_are_skipped() {
    // Rule: [RPC-010].
    let text = r#"{"x":1,"x":2,"\\id":3,"jsonrpc":"2.0","method":"m","y":{"id":1}}"#;
    assert!(matches!(single(text), Ok(Message::Notification(_))));
}

#[test]
fn an_escaped_key_is_the_key() {
    let text = r#"{"jsonrpc":"2\u002e0","\u0069d":1,"m\u0065thod":"p\u0069ng"}"#;
    let Ok(Message::Request(request)) = single(text) else { panic!("refused") };
    assert_eq!((request.id, request.method.as_ref()), (RequestId::Number(1), "ping"));
}

#[test]
fn text_nested_too_deeply_keeps_its_id() {
    let limits = ParseLimits { depth: 3, ..ParseLimits::default() };
    let fits = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[]}}"#;
    assert!(parse(fits, limits).is_ok());
    let deep = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[]]}}"#;
    let malformed = parse(deep, limits).expect_err("too deep");
    assert_eq!(malformed.reason, Reason::TooDeep { limit: 3 });
    assert_eq!((malformed.id, malformed.shape), (Some(RequestId::Number(1)), Shape::Request));
    let deep = br#"{"jsonrpc":"2.0","id":1,"result":{"a":[[]]}}"#;
    assert_eq!(parse(deep, limits).expect_err("too deep").answer(), None);
    let deep = br#"{"jsonrpc":"2.0","method":"m","params":{"a":[[]]},"id":1}"#;
    let malformed = parse(deep, limits).expect_err("too deep");
    assert_eq!((malformed.id, malformed.shape), (Some(RequestId::Number(1)), Shape::Request));
    assert!(parse(b"{}", ParseLimits { depth: 0, ..ParseLimits::default() }).is_err());
    let hostile = "[".repeat(1_000_000);
    assert!(matches!(broken(&hostile).reason, Reason::TooDeep { .. }));
}

#[test]
fn a_batch_yields_its_elements_in_order() {
    // Rule: [BATCH-001] [BATCH-003].
    let text = r#" [ {"jsonrpc":"2.0","method":"a"} , 1 , {"jsonrpc":"2.0","id":1,"method":"b"},
        [{}], {"jsonrpc":"2.0","id":2,"result":{}}, {"id":3} ] "#;
    let elements = batch(text);
    assert!(matches!(elements[0], Ok(Message::Notification(_))));
    assert_eq!(elements[1].as_ref().expect_err("1").reason, Reason::NotAnObject);
    assert!(matches!(elements[2], Ok(Message::Request(_))));
    assert_eq!(elements[3].as_ref().expect_err("[{}]").reason, Reason::BatchNested);
    assert!(matches!(elements[4], Ok(Message::Response(_))));
    assert_eq!(elements[5].as_ref().expect_err("{}").id, Some(RequestId::Number(3)));
    assert_eq!(elements.len(), 6);
}

#[test]
fn an_empty_a_long_and_an_unwanted_batch_are_one_error_each() {
    // Rule: [BATCH-003] [BATCH-010].
    assert_eq!(broken(" [ ] ").reason, Reason::BatchEmpty);
    assert_eq!(broken(" [ ] ").code(), ErrorCode::INVALID_REQUEST);
    let limits = |batch| ParseLimits { batch, ..ParseLimits::default() };
    assert!(parse(b"[1,2]", limits(2)).is_ok());
    let refused = |text: &[u8], batch| parse(text, limits(batch)).expect_err("refused").reason;
    assert_eq!(refused(b"[1,2,3]", 2), Reason::BatchTooLong { limit: 2 });
    assert_eq!(refused(b"[1]", 0), Reason::BatchRefused);
    assert_eq!(refused(b"[1", 0), Reason::NotJson { at: 2 });
}
