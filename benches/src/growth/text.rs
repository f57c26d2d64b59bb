//! JSON that is expensive to parse, as one frame to a server.

use super::Input;
use super::requests::{ServerHarness, one_frame};

const UNIT: usize = 2 * 1024;

pub(super) fn deep_arrays(step: usize) -> Input {
    let (open, close) = ("[".repeat(step * UNIT), "]".repeat(step * UNIT));
    one_frame(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{open}{close}}}}}"#))
}

pub(super) fn deep_objects(step: usize) -> Input {
    let nested = [r#"{"a":"#.repeat(100), "1".into(), "}".repeat(100)].concat();
    let many = vec![nested; step * UNIT / 256].join(",");
    one_frame(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":[{many}]}}}}"#))
}

pub(super) fn huge_number(step: usize) -> Input {
    let digits = "9".repeat(step * UNIT);
    one_frame(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{digits},"progress":{digits}.{digits}e{digits}}}}}"#
    ))
}

pub(super) fn escaped_method(step: usize) -> Input {
    let name = r"\u0041".repeat(step * UNIT);
    one_frame(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#))
}

pub(super) fn escaped_keys(step: usize) -> Input {
    let members = vec![r#""\u0061\u006d\u0065":1"#; step * UNIT / 8].join(",");
    one_frame(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",{members},"params":{{{members}}}}}"#
    ))
}

pub(super) fn many_members(step: usize) -> Input {
    let members: Vec<String> = (0..step * UNIT / 4).map(|n| format!(r#""{n}":{n}"#)).collect();
    let members = members.join(",");
    one_frame(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{members}}}}}"#
    ))
}

pub(super) fn repeated_metadata(step: usize) -> Input {
    let members = vec![r#""_meta":{"progressToken":1,"a":2}"#; step * UNIT / 16].join(",");
    one_frame(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{members}}}}}"#))
}

pub(super) fn many_responses(step: usize) -> Input {
    let responses: Vec<String> =
        (0..step * UNIT / 16).map(|n| format!(r#""{n}":{{"action":"decline"}}"#)).collect();
    let responses = responses.join(",");
    one_frame(ServerHarness::modern(
        "tools/call",
        &format!(r#""name":"t","inputResponses":{{{responses}}},"requestState":"s""#),
    ))
}

pub(super) fn escaped_version(step: usize) -> Input {
    let version = r"\u0001".repeat(step * UNIT);
    one_frame(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}}}}}"#
    ))
}

pub(super) fn many_capabilities(step: usize) -> Input {
    let members: Vec<String> = (0..step * UNIT / 8).map(|n| format!(r#""x{n}":{{}}"#)).collect();
    let members = members.join(",");
    one_frame(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{{members},"experimental":{{{members}}},"extensions":{{{members}}}}}}}}}}}"#
    ))
}
