//! Replies of Redis. Values of an unexpected form are left out.

use redis::Value;

/// An entry of a stream.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// The field `m`.
    pub(crate) message: Option<Value>,
}

/// Returns the items of an array.
pub(crate) fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

/// Returns the pairs of a flat array or a map.
pub(crate) fn pairs(value: Value) -> Vec<(Value, Value)> {
    let mut items = items(value).into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let (Some(name), Some(value)) = (items.next(), items.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// Returns the entries of a range.
pub(crate) fn entries(value: Value) -> Vec<Entry> {
    items(value).into_iter().filter_map(entry).collect()
}

/// Returns the entries that an `XREAD` found in one stream.
pub(crate) fn read_entries(value: Value) -> Vec<Entry> {
    let streams = match value {
        Value::Map(streams) => streams,
        Value::Array(streams) => streams.into_iter().flat_map(pairs).collect(),
        _ => Vec::new(),
    };
    streams.into_iter().flat_map(|(_, list)| entries(list)).collect()
}

fn entry(value: Value) -> Option<Entry> {
    let mut parts = items(value).into_iter();
    let id = text(&parts.next()?)?.to_owned();
    let fields = pairs(parts.next()?);
    let message = fields.into_iter().find(|(name, _)| text(name) == Some("m"));
    Some(Entry { id, message: message.map(|(_, value)| value) })
}
