//! The envelope of messages: parsed in one pass, and borrowed from the frame.

use super::integer::Integer;
use super::malformed::{Defect, ErrorCode, Reason, Shape, unreadable};
use super::member_index::MemberIndex;
use super::scan::{self, ScanError, Scanner};
use super::written::{JsonText, Written};

/// A message with a valid envelope, borrowed from its frame.
///
/// With the feature `alloc`, `Message` is the form that other messages than received ones have, too.
#[derive(Clone, Copy, Debug)]
pub enum Envelope<'a> {
    /// A request, which expects a response.
    Request {
        /// The id that the response must repeat.
        id: IdRef<'a>,
        /// The name of the method.
        method: Written<'a>,
        /// The parameters, always an object.
        params: Option<JsonText<'a>>,
    },
    /// A notification, which is never answered.
    Notification {
        /// The name of the method.
        method: Written<'a>,
        /// The parameters, always an object.
        params: Option<JsonText<'a>>,
    },
    /// A response.
    Response {
        /// The id of the request. `None` only with an error whose sender could not read the id.
        id: Option<IdRef<'a>>,
        /// The `result`, always an object, or the `error`.
        outcome: Result<JsonText<'a>, ErrorRef<'a>>,
    },
}

/// The `error` of a response, borrowed from its frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ErrorRef<'a> {
    /// The kind of failure.
    pub code: ErrorCode,
    /// A short sentence for people.
    pub message: Written<'a>,
    /// Additional information of any JSON type.
    pub data: Option<JsonText<'a>>,
}

/// The id of a request, borrowed from its frame. `"1"` and `1` are different ids.
// MCP 2026-07-28 basic/index#requests [RPC-002] [RPC-006]
#[derive(Clone, Copy, Debug)]
pub enum IdRef<'a> {
    /// An integer id.
    Number(i64),
    /// A string id.
    Text(Written<'a>),
}

/// The limits of [`parse_envelope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseLimits {
    /// Maximum nesting of arrays and objects. The message or its batch is the first level. Values
    /// above [`ParseLimits::DEPTH_MAX`] count as that.
    pub depth: usize,
    /// Maximum number of messages in a batch; zero refuses batches.
    pub batch: usize,
    /// Maximum length of a string id, in bytes of its JSON text between the quotes.
    pub id_length: usize,
}

impl ParseLimits {
    /// Depth at which `serde_json` gives up: deeper text could not be decoded.
    pub const DEPTH_MAX: usize = scan::DEPTH_MAX;
}

impl Default for ParseLimits {
    /// Depth: the maximum that can be decoded; scanning uses no stack. Batch: as many requests as a
    /// busy client has ready; longer batches would make one frame expensive. Ids: 1 KiB, several
    /// times the size of a trace id with a span and a name; each pending request stores its id.
    fn default() -> Self {
        Self { depth: Self::DEPTH_MAX, batch: 100, id_length: 1024 }
    }
}

/// The content of one frame.
#[derive(Clone, Debug)]
pub enum Envelopes<'a> {
    /// One message.
    Single(Envelope<'a>),
    /// A non-empty array of messages.
    // MCP 2025-03-26 basic/index#batching [BATCH-001]
    Batch(EnvelopeBatch<'a>),
}

/// Parses the envelope of a frame in one pass over its bytes and validates the JSON. Members that
/// JSON-RPC does not define are skipped.
///
/// The cost is linear in the length of `bytes`; nothing is copied.
///
/// # Errors
///
/// Fails if the frame is not a message, which is the peer's fault.
pub fn parse_envelope(bytes: &[u8], limits: ParseLimits) -> Result<Envelopes<'_>, Defect<'_>> {
    parse_recording(bytes, limits, "", None)
}

/// Like [`parse_envelope`], and records the members of a request's parameters in `index`. If a
/// parameter starts with `known`, that prefix is not scanned again: it is the start of an object
/// from an earlier frame, parsed with the same limits, and ends with a member that is not a number.
#[inline]
pub(crate) fn parse_recording<'a>(
    bytes: &'a [u8],
    limits: ParseLimits,
    known: &str,
    index: Option<&mut MemberIndex>,
) -> Result<Envelopes<'a>, Defect<'a>> {
    // MCP 2026-07-28 basic/transports/index#messages [RPC-014]: messages are encoded as UTF-8.
    match core::str::from_utf8(bytes) {
        Ok(text) => parse_text::<false>(text, limits, known, index),
        Err(error) => Err(not_utf8(bytes, error)),
    }
}

/// Like [`parse_envelope`], and records the members of a response's result in `index`, unless the
/// result starts with `unless`.
#[inline]
pub(crate) fn parse_recording_result<'a>(
    bytes: &'a [u8],
    limits: ParseLimits,
    unless: &str,
    index: &mut MemberIndex,
) -> Result<Envelopes<'a>, Defect<'a>> {
    // MCP 2026-07-28 basic/transports/index#messages [RPC-014]: messages are encoded as UTF-8.
    match core::str::from_utf8(bytes) {
        Ok(text) => parse_text::<true>(text, limits, unless, Some(index)),
        Err(error) => Err(not_utf8(bytes, error)),
    }
}

/// Records the members of the result if `RESULT`, otherwise those of the parameters.
fn parse_text<'a, const RESULT: bool>(
    text: &'a str,
    limits: ParseLimits,
    start: &str,
    index: Option<&mut MemberIndex>,
) -> Result<Envelopes<'a>, Defect<'a>> {
    let mut scanner = Scanner::new(text);
    let depth = limits.depth.min(ParseLimits::DEPTH_MAX);
    match scanner.peek() {
        Some(b'{') => {
            let mut envelope = Fields::default();
            envelope
                .fill::<RESULT>(&mut scanner, depth, start, index)
                .and_then(|()| scanner.end())
                .map_err(|error| unreadable(text.as_bytes(), reason(error, scanner.at(), depth)))?;
            envelope.message(limits.id_length).map(Envelopes::Single)
        }
        Some(b'[') => EnvelopeBatch::new(scanner, limits, depth).map(Envelopes::Batch),
        _ => {
            // RFC 8259, section 8.1: a byte-order mark may be ignored.
            if let Some(text) = text.strip_prefix(BYTE_ORDER_MARK)
                && text.trim_ascii_start().starts_with(['{', '['])
            {
                return parse_text::<RESULT>(text, limits, start, index);
            }
            let scanned = scanner.value(depth).and_then(|()| scanner.end());
            Err(match scanned {
                Ok(()) => Reason::NotAnObject,
                Err(error) => reason(error, scanner.at(), depth),
            }
            .into())
        }
    }
}

/// The mark that some editors and languages write at the start of UTF-8 text.
const BYTE_ORDER_MARK: char = '\u{feff}';

#[cold]
fn not_utf8(bytes: &[u8], error: core::str::Utf8Error) -> Defect<'_> {
    unreadable(bytes, Reason::NotUtf8 { at: error.valid_up_to() })
}

/// The messages of a batch in order. The array is valid JSON within the limits; a malformed element
/// does not affect the others.
// MCP 2025-03-26 basic/index#batching [BATCH-003]: each invalid element gets its own error.
#[derive(Clone, Debug)]
pub struct EnvelopeBatch<'a> {
    scanner: Scanner<'a>,
    remaining: usize,
    id_length_max: usize,
}

impl<'a> EnvelopeBatch<'a> {
    /// Validates the whole array, whose bracket is the next byte.
    fn new(
        mut scanner: Scanner<'a>,
        limits: ParseLimits,
        depth: usize,
    ) -> Result<Self, Defect<'a>> {
        let limit = limits.batch;
        let mut ahead = scanner.clone();
        ahead
            .value(depth)
            .and_then(|()| ahead.end())
            .map_err(|error| Defect::from(reason(error, ahead.at(), depth)))?;
        // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]: batches were
        // removed.
        if limit == 0 {
            return Err(Reason::BatchRefused.into());
        }
        scanner.bump();
        let mut elements = scanner.clone();
        let mut remaining = 0;
        while !matches!(elements.peek(), None | Some(b']')) {
            if remaining == limit {
                return Err(Reason::BatchTooLong { limit }.into());
            }
            remaining += 1;
            elements.trusted_value();
            elements.eat(b',');
        }
        // MCP 2025-03-26 basic/index#batching [BATCH-003]: an empty array is one -32600 error.
        if remaining == 0 {
            return Err(Reason::BatchEmpty.into());
        }
        Ok(Self { scanner, remaining, id_length_max: limits.id_length })
    }
}

impl<'a> Iterator for EnvelopeBatch<'a> {
    type Item = Result<Envelope<'a>, Defect<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let mut envelope = Fields::default();
        let message = match self.scanner.peek() {
            Some(b'{') => {
                match envelope.fill::<false>(&mut self.scanner, ParseLimits::DEPTH_MAX, "", None) {
                    Ok(()) => envelope.message(self.id_length_max),
                    // The array was scanned before.
                    Err(error) => {
                        Err(reason(error, self.scanner.at(), ParseLimits::DEPTH_MAX).into())
                    }
                }
            }
            first => {
                self.scanner.trusted_value();
                Err(if first == Some(b'[') { Reason::BatchNested } else { Reason::NotAnObject }
                    .into())
            }
        };
        self.scanner.eat(b',');
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for EnvelopeBatch<'_> {}

/// The texts of the members that JSON-RPC defines.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
    repeats: Repeats<'a>,
}

/// The text of a member, and its recorded repeats.
type Slot<'e, 'a> = (&'e mut Option<&'a str>, &'e mut Repeats<'a>);

/// The length of the longest name of a member.
const NAME_LENGTH_MAX: usize = "jsonrpc".len();

/// The members of a message.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The start of most messages, up to their second member. It is compared in one step.
const HEAD: &str = "{\"jsonrpc\":\"2.0\",";

/// The text of `jsonrpc` as it is nearly always written.
const VERSION: &str = "\"2.0\"";

/// Members that occur more than once.
#[derive(Debug, Default)]
struct Repeats<'a> {
    /// The most recent repeated member.
    name: Option<&'static str>,
    /// The previous text of `id`.
    id: Option<&'a str>,
    /// Whether `id` occurred with two different texts.
    ambiguous: bool,
}

impl<'a> Repeats<'a> {
    #[cold]
    fn note(&mut self, key: &str, before: &'a str) {
        let key = Written::new(key);
        self.name = MEMBERS.into_iter().find(|name| key.is(name));
        if key.is("id") {
            self.ambiguous |= self.id.is_some_and(|id| id != before);
            self.id = Some(before);
        }
    }
}

impl<'a> Fields<'a> {
    /// Scans an object, whose brace is the next byte, and stores the members it knows. `start` is a
    /// known prefix of a parameter, or the prefix of a `RESULT` whose members are not recorded.
    fn fill<const RESULT: bool>(
        &mut self,
        scanner: &mut Scanner<'a>,
        depth: usize,
        start: &str,
        mut index: Option<&mut MemberIndex>,
    ) -> Result<(), ScanError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(ScanError::TooDeep);
        };
        if scanner.eat_text(HEAD) {
            self.jsonrpc = Some(VERSION);
        } else {
            scanner.bump();
            if scanner.eat(b'}') {
                return Ok(());
            }
        }
        loop {
            let key = scanner.key().ok_or(ScanError::Syntax)?;
            let has_id = self.id.is_some();
            let slot = self.slot(key.text, key.escaped);
            let value = scanner.at();
            // The member is recorded before its value is validated, so that a response is told from
            // a request even if its value is nested too deeply.
            match slot {
                None => scanner.value(depth)?,
                Some((slot, repeats)) => {
                    if let Some(before) = slot.replace("") {
                        repeats.note(key.text, before);
                    }
                    // Only requests and responses are indexed, and nearly all of them start with
                    // their id.
                    if let Some(index) = index.as_deref_mut()
                        && MemberIndex::IS_KEPT
                        && has_id
                        && key.text == if RESULT { "result" } else { "params" }
                        && scanner.peek() == Some(b'{')
                        && !(RESULT && scanner.starts_with(start))
                    {
                        index.fill(scanner, depth, if RESULT { "" } else { start })?;
                    } else {
                        scanner.value(depth)?;
                    }
                    *slot = Some(scanner.since(value));
                }
            }
            if scanner.eat(b',') {
                continue;
            }
            return if scanner.eat(b'}') { Ok(()) } else { Err(ScanError::Syntax) };
        }
    }

    /// Returns the slot of a member, and its repeats.
    fn slot(&mut self, key: &str, escaped: bool) -> Option<Slot<'_, 'a>> {
        let slot = match key {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            other if escaped => {
                // Other names are longer than the storage.
                let mut storage = [0; NAME_LENGTH_MAX];
                let name = Written { text: other, escaped }.resolve_in(&mut storage)?;
                return self.slot(name, false);
            }
            _ => return None,
        };
        Some((slot, &mut self.repeats))
    }

    /// Builds the message, if the envelope is valid.
    fn message(&self, id_length_max: usize) -> Result<Envelope<'a>, Defect<'a>> {
        self.interpret(id_length_max).map_err(|reason| Defect {
            reason,
            shape: self.shape(),
            id: self.safe_id(),
        })
    }

    fn interpret(&self, id_length_max: usize) -> Result<Envelope<'a>, Reason> {
        if let Some(name) = self.repeats.name {
            return Err(Reason::DuplicateMember(name));
        }
        // MCP 2026-07-28 basic/index#messages [RPC-001]: exactly the string "2.0".
        match self.jsonrpc {
            None => return Err(Reason::JsonrpcMissing),
            Some(version) if is_version(version) => {}
            Some(_) => return Err(Reason::JsonrpcWrong),
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => self.call(method, id_length_max),
            (None, Some(result), None) => self.answer(result, id_length_max),
            (None, None, Some(error)) => self.refusal(error, id_length_max),
            (None, None, None) => Err(Reason::Purposeless),
            _ => match self.without_null() {
                Some(envelope) => envelope.interpret(id_length_max),
                None if self.method.is_some() => Err(Reason::MethodAndOutcome),
                // MCP 2025-06-18 basic/index#responses [RPC-007]: exactly one of `result` or
                // `error`.
                None => Err(Reason::ResultAndError),
            },
        }
    }

    /// Drops one of several members that exclude each other if it is `null`, which counts as
    /// absent: peers in the style of JSON-RPC 1.0 write `"error":null` next to a result.
    #[cold]
    fn without_null(&self) -> Option<Self> {
        let mut rest = Self { repeats: Repeats::default(), ..*self };
        let members = [&mut rest.error, &mut rest.result, &mut rest.method];
        let null = members.into_iter().find(|member| **member == Some("null"))?;
        *null = None;
        Some(rest)
    }

    fn call(&self, method: &'a str, id_length_max: usize) -> Result<Envelope<'a>, Reason> {
        // MCP 2026-07-28 basic/index#requests [RPC-002]: an `id` that is a string or an integer.
        // MCP 2026-07-28 basic/index#notifications [RPC-012]: a notification has no `id` member; a
        // null id makes the message a request, and [RPC-003] such an id is refused.
        let id = self.id.map(|id| read_id(id, id_length_max)).transpose()?;
        let method = Written::from_quoted(method).ok_or(Reason::MethodNotString)?;
        // MCP 2026-07-28 schema.json#JSONRPCRequest [RPC-011]: `params` is an object. `null` counts
        // as absent, as in every optional member, and so does an empty array.
        let params = match self.params {
            None | Some("null") => None,
            Some(params) if params.starts_with('{') => Some(JsonText::trusted(params)),
            Some(params) if JsonText::trusted(params).is_empty_array() => None,
            Some(_) => return Err(Reason::ParamsNotObject),
        };
        Ok(match id {
            Some(id) => Envelope::Request { id, method, params },
            None => Envelope::Notification { method, params },
        })
    }

    fn answer(&self, result: &'a str, id_length_max: usize) -> Result<Envelope<'a>, Reason> {
        let id = read_id(self.id.ok_or(Reason::IdMissing)?, id_length_max)?;
        // MCP 2026-07-28 schema.json#Result [RPC-010]: a `result` is an object.
        let outcome = if result.starts_with('{') {
            Ok(JsonText::trusted(result))
        } else if JsonText::trusted(result).is_empty_array() {
            Ok(JsonText::EMPTY_OBJECT)
        } else {
            return Err(Reason::ResultNotObject);
        };
        Ok(Envelope::Response { id: Some(id), outcome })
    }

    fn refusal(&self, error: &'a str, id_length_max: usize) -> Result<Envelope<'a>, Reason> {
        // MCP 2025-11-25 basic/index#error-responses [RPC-009]: receivers accept an error without
        // `id`. JSON-RPC itself writes `null` there, and so do many peers.
        let id = match self.id {
            None | Some("null") => None,
            Some(id) => Some(read_id(id, id_length_max)?),
        };
        let outcome = Err(read_error(error).ok_or(Reason::ErrorMalformed)?);
        Ok(Envelope::Response { id, outcome })
    }

    /// Returns the id for the error response, whatever its length, because the sender can only
    /// match the response by it. Returns `None` if two different ids were given.
    // MCP 2025-11-25 basic/index#error-responses [RPC-009]: the id is omitted only if it cannot be
    // read.
    fn safe_id(&self) -> Option<IdRef<'a>> {
        let id = self.id?;
        let ambiguous = self.repeats.ambiguous || self.repeats.id.is_some_and(|it| it != id);
        if ambiguous { None } else { read_id(id, usize::MAX).ok() }
    }

    fn shape(&self) -> Shape {
        let has_outcome = self.result.is_some() || self.error.is_some();
        let method = self.method.filter(|method| !has_outcome || *method != "null");
        match (method, self.id) {
            (None, _) if has_outcome => Shape::Response,
            (None, _) => Shape::Unknown,
            (Some(_), Some(_)) => Shape::Request,
            // JSON-RPC 2.0 answers `{"method": 1}` and `{"foo": "boo"}`: these are not malformed
            // notifications, but invalid requests.
            (Some(method), None) if method.starts_with('"') && self.is_versioned() => {
                Shape::Notification
            }
            (Some(_), None) => Shape::Unknown,
        }
    }

    fn is_versioned(&self) -> bool {
        self.jsonrpc.is_some_and(is_version)
    }
}

#[inline]
fn is_version(text: &str) -> bool {
    text == VERSION || Written::from_quoted(text).is_some_and(|version| version.is("2.0"))
}

/// Reads an id whose text between the quotes has at most `length_max` bytes. The id is never
/// written longer than it was received, because the writer uses the shortest form.
pub(super) fn read_id(text: &str, length_max: usize) -> Result<IdRef<'_>, Reason> {
    match text.as_bytes() {
        [b'"', inner @ ..] if inner.len() > length_max.saturating_add(1) => {
            Err(Reason::IdTooLong { limit: length_max })
        }
        [b'"', ..] => Written::from_quoted(text).map(IdRef::Text).ok_or(Reason::IdWrongType),
        [b'-' | b'0'..=b'9', ..] => match read_integer(text) {
            Some(number) => Ok(IdRef::Number(number)),
            // A response repeats the value of the id: a peer that writes 3 as `3.0` has one number
            // type, so it reads `3` as the same.
            None if text.contains(['.', 'e', 'E']) => match read_number(text) {
                Some(number) => Ok(IdRef::Number(number)),
                None => Err(Reason::IdFractional),
            },
            None => Err(Reason::IdOutOfRange),
        },
        // MCP 2026-07-28 basic/index#requests [RPC-003]: an id is never null.
        [b'n', ..] => Err(Reason::IdNull),
        _ => Err(Reason::IdWrongType),
    }
}

/// Returns the integer that the text of a JSON number has the form of, if it has 64 bits.
// A third as much code as `str::parse`, which also tells why it fails.
fn read_integer(text: &str) -> Option<i64> {
    /// JSON has no leading zeros, so longer numbers are out of range. Shorter ones fit in a `u64`.
    const DIGITS_MAX: usize = 19;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut number = 0_u64;
    for byte in digits.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.wrapping_mul(10).wrapping_add(digit.into());
    }
    if digits.len() == text.len() {
        number.try_into().ok()
    } else {
        0_i64.checked_sub_unsigned(number)
    }
}

/// Returns the integer of at most 64 bits that a JSON number is, in any spelling.
#[cold]
fn read_number(text: &str) -> Option<i64> {
    match Integer::read_any_spelling(text)? {
        Integer::Positive(number) => number.try_into().ok(),
        Integer::Negative(number) => Some(number),
    }
}

// MCP 2026-07-28 basic/index#error-responses [RPC-008]: an integer `code` and a string `message`;
// `data` is optional and may be any JSON type.
fn read_error(text: &str) -> Option<ErrorRef<'_>> {
    if !text.starts_with('{') {
        return None;
    }
    let (mut code, mut message, mut data) = (None, None, None);
    let mut scanner = Scanner::new(text);
    scanner.bump();
    while scanner.peek() == Some(b'"') {
        let key = scanner.key()?;
        let start = scanner.at();
        scanner.trusted_value();
        let slot = match key.resolve_in(&mut [0; NAME_LENGTH_MAX]) {
            Some("code") => &mut code,
            Some("message") => &mut message,
            Some("data") => &mut data,
            _ => &mut None,
        };
        if slot.replace(scanner.since(start)).is_some() {
            return None;
        }
        scanner.eat(b',');
    }
    Some(ErrorRef {
        code: ErrorCode(code.and_then(|code| read_integer(code).or_else(|| read_number(code)))?),
        message: Written::from_quoted(message?)?,
        data: data.map(JsonText::trusted),
    })
}

const fn reason(error: ScanError, at: usize, depth: usize) -> Reason {
    match error {
        ScanError::Syntax => Reason::NotJson { at },
        ScanError::TooDeep => Reason::TooDeep { limit: depth },
    }
}
