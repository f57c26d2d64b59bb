//! Tool arguments that are mirrored into headers (`x-mcp-header`), so that intermediaries can route
//! a call without reading its body.

mod number;
mod schema;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use super::field_value::{InvalidFieldValue, decode, encode};
use crate::jsonrpc::RawJson;
use number::Number;

/// The maximum number of mirrored arguments of one tool. 64: intermediaries accept about a hundred
/// header lines in total, and every member of the arguments is compared with the mirrored names.
pub(crate) const MIRRORS_MAX: usize = 64;

const PREFIX: &str = "Mcp-Param-";

/// The mirrored arguments of a tool, and the header of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderParams {
    /// The names of the headers, with their prefix.
    headers: Vec<String>,
    /// The mirrored properties of the arguments as a tree, each header once.
    branches: Vec<Branch>,
}

/// A property that is mirrored, or that has mirrored properties below it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Branch {
    property: String,
    /// The index of its header in the list.
    mirror: Option<usize>,
    branches: Vec<Self>,
}

/// An error in the annotations of a schema. `at` is a JSON pointer to the schema with the
/// annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidHeaderParam {
    #[error("the `x-mcp-header` at {at:?} is empty")]
    Empty { at: String },
    #[error("the `x-mcp-header` at {at:?} is not a string")]
    NotText { at: String },
    #[error(
        "the `x-mcp-header` {name:?} at {at:?} has a character that is not allowed in a header name"
    )]
    NotToken { at: String, name: String },
    #[error("the `x-mcp-header` {name:?} at {at:?} is a duplicate")]
    Duplicate { at: String, name: String },
    #[error("the schema at {at:?} has `x-mcp-header` twice")]
    Repeated { at: String },
    #[error("{at:?} has an `x-mcp-header` and is not of type string, integer or boolean alone")]
    Type { at: String },
    #[error("the `x-mcp-header` at {at:?} is not reached through `properties` alone")]
    Unreachable { at: String },
    #[error("the schema has more than {MIRRORS_MAX} properties with an `x-mcp-header`")]
    TooMany,
    #[error("the schema with an `x-mcp-header` is nested too deeply")]
    Unreadable,
}

/// A call has no headers that every peer would read the same way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsendableCall {
    /// The tool was not listed on this connection, or with an invalid definition, so its headers are
    /// unknown.
    #[error("the tool `{tool}` was not listed")]
    Unlisted { tool: String },
    /// The tool was listed with an invalid definition.
    #[error("the definition of the tool `{tool}` is invalid: {reason}")]
    Rejected { tool: String, reason: InvalidHeaderParam },
    /// It is outside the range that a peer reading numbers as binary64 represents exactly.
    #[error("the integer for {header} is not between -(2^53 - 1) and 2^53 - 1")]
    OutOfRange { header: String },
    /// Its name, or that of an object around it, is repeated.
    #[error("the argument for {header} is repeated")]
    Ambiguous { header: String },
}

/// The headers of a call differ from its arguments. The client or an intermediary is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderParamMismatch {
    #[error("{header} is missing, but the arguments have a value for it")]
    Missing { header: String },
    #[error("{header} has a value, but the arguments have no value for it")]
    Unexpected { header: String },
    #[error("the value of {header} differs from that in the arguments")]
    Differs { header: String },
    #[error("the value of {header} is invalid: {reason}")]
    Invalid { header: String, reason: InvalidFieldValue },
    #[error("the integer for {header} is not between -(2^53 - 1) and 2^53 - 1")]
    OutOfRange { header: String },
    /// A mirrored member, or an object around it, is repeated.
    #[error("the argument `{member}` is repeated")]
    Repeated { member: String },
}

impl HeaderParams {
    /// Reads the annotations of a tool's `inputSchema`. Linear in its length.
    ///
    /// # Errors
    ///
    /// See [`InvalidHeaderParam`]. Such a tool cannot be used over HTTP.
    // MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters [HDR-008]
    pub(crate) fn from_schema(input_schema: &RawJson<'_>) -> Result<Self, InvalidHeaderParam> {
        let text = input_schema.as_str();
        // Most schemas have no annotation, which a text search shows; an escape sequence may hide
        // one.
        if !text.contains(schema::ANNOTATION) && !text.contains("\\u") {
            return Ok(Self::default());
        }
        schema::read(text)
    }

    /// Returns whether no argument is mirrored.
    pub(crate) const fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Returns the memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|header| size_of::<String>() + header.len());
        headers.sum::<usize>() + self.branches.iter().map(Branch::bytes).sum::<usize>()
    }

    /// Returns the names and values of the headers for a call with these arguments. Linear in their
    /// length and in the depth of the mirrored properties.
    ///
    /// A value is converted by its own type, whether or not the schema agrees, because a server
    /// compares the headers with the arguments before it validates them. A value without a
    /// conversion, such as a fraction or a list, gets no header: the server will refuse the call.
    ///
    /// # Errors
    ///
    /// See [`UnsendableCall`].
    pub(crate) fn fields<'a>(
        &'a self,
        arguments: &'a RawJson<'_>,
    ) -> Result<impl Iterator<Item = (&'a str, Cow<'a, str>)>, UnsendableCall> {
        let mut fields = Vec::new();
        for (header, occurrence) in self.headers.iter().zip(self.find(arguments)) {
            let value = match occurrence.scalar() {
                // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-019]
                Scalar::Absent | Scalar::Other => continue,
                // MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-020]
                Scalar::Text(Cow::Borrowed(text)) => encode(text),
                Scalar::Text(Cow::Owned(text)) => Cow::Owned(encode(&text).into_owned()),
                Scalar::Integer(integer) => Cow::Owned(format!("{integer}")),
                Scalar::Boolean(boolean) => Cow::Borrowed(if boolean { "true" } else { "false" }),
                // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-014]
                Scalar::OutOfRange => {
                    return Err(UnsendableCall::OutOfRange { header: header.clone() });
                }
                Scalar::Repeated(_) => {
                    return Err(UnsendableCall::Ambiguous { header: header.clone() });
                }
            };
            fields.push((header.as_str(), value));
        }
        Ok(fields.into_iter())
    }

    /// Checks that the headers of a call match its arguments. `received` contains the received
    /// header lines; headers that the tool does not use are ignored. Linear in the length of the
    /// arguments; each header line is compared with each mirrored name once.
    ///
    /// A repeated argument is refused, because the handler may read one value and an intermediary
    /// the other.
    ///
    /// # Errors
    ///
    /// The client sent headers that do not match, which is answered with 400 and -32020, or with
    /// -32602 if an argument is repeated: see [`HeaderParamMismatch`].
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HDR-025]
    pub(crate) fn check(
        &self,
        arguments: &RawJson<'_>,
        received: &[(&str, &[u8])],
    ) -> Result<(), HeaderParamMismatch> {
        for (name, occurrence) in self.headers.iter().zip(self.find(arguments)) {
            let header = || name.clone();
            // MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]
            let mut values = received
                .iter()
                .filter(|(received, _)| received.eq_ignore_ascii_case(name))
                .map(|(_, value)| *value)
                .peekable();
            let scalar = occurrence.scalar();
            match scalar {
                // MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers
                // [HDR-029]: no header is expected; intermediaries would trust one that is present anyway.
                Scalar::Absent if values.peek().is_some() => {
                    return Err(HeaderParamMismatch::Unexpected { header: header() });
                }
                Scalar::Absent => continue,
                Scalar::Repeated(member) => {
                    return Err(HeaderParamMismatch::Repeated { member: member.into() });
                }
                // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-014]
                Scalar::OutOfRange => {
                    return Err(HeaderParamMismatch::OutOfRange { header: header() });
                }
                // MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers [HDR-028]
                _ if values.peek().is_none() => {
                    return Err(HeaderParamMismatch::Missing { header: header() });
                }
                _ => {}
            }
            // If a header is repeated, each value has to match.
            for value in values {
                // MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers [HDR-024] [HDR-027]
                let text = decode(value)
                    .map_err(|reason| HeaderParamMismatch::Invalid { header: header(), reason })?;
                if !scalar.matches_header(&text) {
                    return Err(HeaderParamMismatch::Differs { header: header() });
                }
            }
        }
        Ok(())
    }

    /// Returns the values of the arguments for each header.
    fn find<'a>(&'a self, arguments: &'a RawJson<'_>) -> Vec<Occurrence<'a>> {
        let mut found = vec![Occurrence::None; self.headers.len()];
        find_below(&self.branches, &arguments.borrow(), &mut found);
        found
    }
}

// MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-019]: at the exact path.
fn find_below<'a>(branches: &'a [Branch], object: &RawJson<'a>, found: &mut [Occurrence<'a>]) {
    if branches.is_empty() {
        return;
    }
    let mut seen = vec![false; branches.len()];
    for member in object.walk() {
        let name = member.name();
        for (branch, seen) in branches.iter().zip(&mut seen) {
            if name != branch.property {
                continue;
            }
            if mem::replace(seen, true) {
                branch.mark_repeated(&branch.property, found);
                continue;
            }
            if let Some(occurrence) = branch.mirror.and_then(|mirror| found.get_mut(mirror)) {
                *occurrence = Occurrence::Once(member.value.clone());
            }
            find_below(&branch.branches, &member.value, found);
        }
    }
}

impl Branch {
    fn bytes(&self) -> usize {
        let below = self.branches.iter().map(Self::bytes).sum::<usize>();
        size_of::<Self>() + self.property.len() + below
    }

    fn mark_repeated<'a>(&self, member: &'a str, found: &mut [Occurrence<'a>]) {
        if let Some(occurrence) = self.mirror.and_then(|mirror| found.get_mut(mirror)) {
            *occurrence = Occurrence::Repeated(member);
        }
        for branch in &self.branches {
            branch.mark_repeated(member, found);
        }
    }
}

/// The value of the arguments at the path of a mirrored property.
#[derive(Clone)]
enum Occurrence<'a> {
    None,
    Once(RawJson<'a>),
    /// This member of the path is repeated.
    Repeated(&'a str),
}

impl<'a> Occurrence<'a> {
    fn scalar(&self) -> Scalar<'a> {
        let value = match self {
            Self::None => return Scalar::Absent,
            Self::Repeated(member) => return Scalar::Repeated(member),
            Self::Once(value) => value,
        };
        match value.as_str() {
            "null" => Scalar::Absent,
            "true" => Scalar::Boolean(true),
            "false" => Scalar::Boolean(false),
            text => match (number::read(text), value.to_text()) {
                (Some(Number::Integer(integer)), _) => Scalar::Integer(integer),
                (Some(Number::OutOfRange), _) => Scalar::OutOfRange,
                (_, Some(text)) => Scalar::Text(text),
                _ => Scalar::Other,
            },
        }
    }
}

/// An argument, as far as a header can express it.
enum Scalar<'a> {
    /// The argument is missing or null.
    Absent,
    Text(Cow<'a, str>),
    Integer(i64),
    Boolean(bool),
    /// An integer that not every peer represents exactly.
    OutOfRange,
    /// The argument is repeated, or this member of its path is.
    Repeated(&'a str),
    /// A fraction, an array or an object.
    Other,
}

impl Scalar<'_> {
    fn matches_header(&self, header: &str) -> bool {
        match self {
            Self::Text(text) => text == header,
            Self::Boolean(boolean) => header == if *boolean { "true" } else { "false" },
            // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HDR-030]
            Self::Integer(integer) => number::read(header) == Some(Number::Integer(*integer)),
            Self::Absent | Self::OutOfRange | Self::Repeated(_) | Self::Other => false,
        }
    }
}

#[cfg(test)]
mod tests;
