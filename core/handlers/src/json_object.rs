//! JSON objects as text, with one member changed.

use alloc::string::{String, ToString};

use mcp_sansio::jsonrpc::RawJson;

/// Returns an object with this member in place of the one with its name, or without it. The other
/// members keep their text and their order.
pub(crate) fn with_member(
    object: &RawJson<'_>,
    name: &str,
    value: Option<&RawJson<'_>>,
) -> RawJson<'static> {
    let mut out = String::from("{");
    let mut push = |name: &str, value: &RawJson<'_>| {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&string(name));
        out.push(':');
        out.push_str(value.as_str());
    };
    let mut new = value;
    for member in object.members() {
        if member.name() != name {
            push(&member.name(), &member.value);
        } else if let Some(value) = new.take() {
            push(name, value);
        }
    }
    if let Some(value) = new {
        push(name, value);
    }
    out.push('}');
    RawJson::trusted_string(out)
}

/// Returns whether an object is not empty.
pub(crate) fn has_members(object: &RawJson<'_>) -> bool {
    object.members().next().is_some()
}

/// Returns a JSON string.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_added_replaced_and_removed_and_the_others_keep_their_text() {
        let object = RawJson::parse(r#"{"a\n":1.00,"b":{"c":[]},"b":2}"#).unwrap();
        let value = RawJson::parse("true").unwrap();
        let with = |name, value| with_member(&object, name, value).as_str().replace('\n', "");
        assert_eq!(with("d", Some(&value)), r#"{"a\n":1.00,"b":{"c":[]},"b":2,"d":true}"#);
        assert_eq!(with("b", Some(&value)), r#"{"a\n":1.00,"b":true}"#);
        assert_eq!(with("a\n", None), r#"{"b":{"c":[]},"b":2}"#);
        let one = with_member(&RawJson::EMPTY_OBJECT, "x", Some(&value));
        assert!(has_members(&one) && !has_members(&with_member(&one, "x", None)));
    }
}
