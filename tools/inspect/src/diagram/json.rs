//! Formatting of JSON, and the drawn parts of a message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parts of a message that are drawn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    pub(super) id: Option<Value>,
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) params: Option<Params>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    pub(super) name: Option<Value>,
    pub(super) uri: Option<Value>,
    #[serde(rename = "progressToken")]
    pub(super) progress_token: Option<Value>,
    pub(super) progress: Option<Value>,
    #[serde(rename = "requestId")]
    pub(super) request_id: Option<Value>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "progressToken")]
    pub(super) progress_token: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub(super) subscription: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) code: Value,
    pub(super) message: Value,
}

/// Splits a batch into its messages. Any other text is a single message.
pub(super) fn messages(text: &str) -> Vec<&str> {
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.into_iter().map(RawValue::get).collect(),
        Err(_) => vec![text],
    }
}

/// Returns strings without quotes, and other values as JSON.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Indents JSON. Numbers, keys and their order stay unchanged, and a text that is not JSON is
/// returned as is.
pub(super) fn indented(text: &str) -> String {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return text.into();
    }
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let mut characters = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        // The indentation is limited because deep nesting could make it longer than the text.
        out.push_str(&"  ".repeat(depth.min(40)));
    };
    while let Some(character) = characters.next() {
        if quoted {
            out.push(character);
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                quoted = true;
                out.push('"');
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ if character.is_ascii_whitespace() => {}
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_otherwise_unchanged() {
        let text = r#"{"b":[1.50,{ }],"a\"{":"x, {y}: \\"}"#;
        let expected = "{\n  \"b\": [\n    1.50,\n    {}\n  ],\n  \"a\\\"{\": \"x, {y}: \\\\\"\n}";
        assert_eq!(indented(text), expected);
        assert_eq!(indented("no JSON {"), "no JSON {");
    }

    #[test]
    fn a_batch_is_split_and_any_other_text_is_one_message() {
        assert_eq!(messages(r#"[{"id":1}, {"id":2}]"#), [r#"{"id":1}"#, r#"{"id":2}"#]);
        assert_eq!(messages("x"), ["x"]);
    }
}
