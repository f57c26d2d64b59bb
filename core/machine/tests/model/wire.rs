//! Describes lines of a machine in the form of an [`Outcome`].

use serde_json::Value;

const META: &str = "/params/_meta/io.modelcontextprotocol~1";

/// Describes whole lines.
pub(crate) fn spell_lines(text: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(text).expect("UTF-8");
    text.lines().map(|line| spell(&serde_json::from_str(line).expect("JSON"))).collect()
}

pub(crate) fn spell(message: &Value) -> String {
    let id = message.get("id").map_or_else(|| "none".into(), Value::to_string);
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let list = |pointer: &str| {
        let list = message.pointer(pointer).and_then(Value::as_array);
        list.map(|list| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
    };
    if let Some(method) = message["method"].as_str() {
        let mut line = method.to_owned();
        if message.get("id").is_some() {
            line += &format!(" {id}");
        }
        let modern = format!("{META}protocolVersion");
        let version = text("/params/protocolVersion").or_else(|| text(&modern));
        if let Some(version) = version {
            line += &format!(" at {version}");
        }
        if let Some(inputs) = message.pointer("/params/inputResponses").and_then(Value::as_object) {
            line += &format!(" with {}", inputs.keys().cloned().collect::<Vec<_>>().join(","));
        }
        if let Some(state) = text("/params/requestState") {
            line += &format!(" and {state}");
        }
        if let Some(cancelled) = message.pointer("/params/requestId") {
            line += &format!(" of {cancelled}");
        }
        if let Some(stream) = message.pointer(&format!("{META}subscriptionId")) {
            line += &format!(" on {stream}");
        }
        if message.get("id").is_none()
            && let Some(token) = message.pointer("/params/progressToken")
        {
            line += &format!(" for {token}");
        }
        return line;
    }
    if let Some(code) = message.pointer("/error/code") {
        let mut line = format!("error {id} {code}");
        if let Some(versions) = list("/error/data/supported") {
            line += &format!(" {versions}");
        }
        if let Some(required) = message.pointer("/error/data/requiredCapabilities") {
            line += &format!(" {required}");
        }
        return line;
    }
    let mut line = format!("result {id}");
    if let Some(version) = text("/result/protocolVersion") {
        line += &format!(" at {version}");
    }
    if let Some(kind) = text("/result/resultType") {
        line += &format!(" {kind}");
    }
    if let Some(versions) = list("/result/supportedVersions") {
        line += &format!(" {versions}");
    }
    line
}
