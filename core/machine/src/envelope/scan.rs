//! A JSON scanner: validates the grammar and finds the ends of values without building them.
//!
//! It accepts the grammar of RFC 8259 except lone surrogates in escapes: these cannot be decoded,
//! so a later reader of the string would fail. Each byte is read a bounded number of times, and
//! each nesting level uses one bit, not a stack frame.

use core::ops::Range;

use super::written::Written;

/// Why a scan stopped at [`Scanner::at`]. The error does not contain the position, so that results
/// fit in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// The next byte is not allowed here, or the text ends too early.
    Syntax,
    /// Arrays and objects are nested more deeply than allowed.
    TooDeep,
}

/// A position in a text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A stack of open containers, one bit each: one for an object, zero for an array. Its width limits
/// the depth.
type Nesting = u128;

/// The sets of open containers around the current one, each [`DEPTH_MAX`] deep, for text of any
/// depth.
pub(crate) trait Outer {
    /// Puts the current set away. Returns `false` if the text is too deep.
    fn push(&mut self, objects: u128) -> bool;

    /// Takes the last set back.
    fn pop(&mut self) -> Option<u128>;
}

/// For text of a limited depth.
impl Outer for () {
    fn push(&mut self, _: u128) -> bool {
        false
    }

    fn pop(&mut self) -> Option<u128> {
        None
    }
}

/// Maximum depth of a scan.
pub(crate) const DEPTH_MAX: usize = Nesting::BITS as usize - 1;

/// Whether text that was read before is recognized as a cached prefix. Devices do without: they
/// have time to read it again, but little flash for the code.
pub(crate) const PREFIX_IS_CACHED: bool =
    cfg!(not(any(target_pointer_width = "16", target_pointer_width = "32")));

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns the text from `start` up to the current position.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        self.at = skip_space(bytes, self.at);
        bytes.get(self.at).copied()
    }

    /// Consumes the byte that [`Scanner::peek`] returned.
    #[inline]
    pub(crate) const fn bump(&mut self) {
        self.at += 1;
    }

    /// Consumes `byte` if it is next, after white space.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Returns whether the array at the next byte has no elements.
    pub(crate) fn is_empty_array(&self) -> bool {
        let mut ahead = self.clone();
        ahead.bump();
        ahead.eat(b']')
    }

    /// Returns whether `text` is next.
    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// Consumes `text` if it is next.
    #[inline]
    pub(crate) fn eat_text(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(ScanError::Syntax),
        }
    }

    /// Consumes the key of a member, its colon and the following white space, and returns the key
    /// as written without its quotes. `None` means a syntax error.
    #[inline]
    pub(crate) fn key(&mut self) -> Option<Written<'a>> {
        let bytes = self.text.as_bytes();
        let quote = skip_space(bytes, self.at);
        let mut escaped = false;
        let end = member_key(bytes, quote, &mut escaped);
        match end.and_then(|end| colon(bytes, end)) {
            Ok(after) => {
                self.at = skip_space(bytes, after);
                let text = self.text.get(quote + 1..end.ok()? - 1)?;
                Some(Written { text, escaped })
            }
            Err(at) => {
                self.at = at;
                None
            }
        }
    }

    /// Consumes the string that is next and returns its content as written. `None` means a syntax
    /// error.
    pub(crate) fn string(&mut self) -> Option<Written<'a>> {
        let (start, mut escaped) = (self.at, false);
        let end = member_key(self.text.as_bytes(), start, &mut escaped).ok()?;
        self.at = end;
        let text = self.text.get(start + 1..end - 1)?;
        Some(Written { text, escaped })
    }

    /// Consumes one value with at most `depth` levels of nesting.
    #[inline]
    pub(crate) fn value(&mut self, depth: usize) -> Result<(), ScanError> {
        let bytes = self.text.as_bytes();
        let step = match bytes.get(self.at) {
            // Most values of an envelope are scalars.
            Some(b'"') => string(bytes, self.at + 1, &mut false),
            Some(b'1'..=b'9') => number(bytes, self.at),
            _ => return self.any_value::<false>(depth),
        };
        self.finish(step)
    }

    /// Consumes an object with at most `depth` levels of nesting, including itself, and passes its
    /// members to `note`: the start of the key, the key, and the range of the value.
    ///
    /// A value that starts with `known` is validated only after that prefix: an opening brace and
    /// complete members, the last of which is not a number, that were validated in the same
    /// position before.
    pub(crate) fn object(
        &mut self,
        depth: usize,
        known: &str,
        mut note: impl FnMut(usize, Written<'a>, Range<usize>),
    ) -> Result<(), ScanError> {
        let depth = depth.min(DEPTH_MAX).checked_sub(1).ok_or(ScanError::TooDeep)?;
        self.bump();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            self.peek();
            let quote = self.at;
            let key = self.key().ok_or(ScanError::Syntax)?;
            let start = self.at;
            if depth > 0 && !known.is_empty() && self.starts_with(known) {
                self.at += known.len();
                self.any_value::<true>(depth)?;
            } else {
                self.value(depth)?;
            }
            note(quote + 1, key, start..self.at);
            if self.eat(b',') {
                continue;
            }
            return if self.eat(b'}') { Ok(()) } else { Err(ScanError::Syntax) };
        }
    }

    /// Moves to the end of a step, or to the byte where it failed.
    #[inline]
    const fn finish(&mut self, step: Step) -> Result<(), ScanError> {
        match step {
            Ok(at) => {
                self.at = at;
                Ok(())
            }
            Err(at) => {
                self.at = at;
                Err(ScanError::Syntax)
            }
        }
    }

    /// Consumes a value or, if `WITHIN`, the rest of an object after a member.
    #[inline(never)]
    fn any_value<const WITHIN: bool>(&mut self, depth: usize) -> Result<(), ScanError> {
        let (bytes, depth) = (self.text.as_bytes(), depth.min(DEPTH_MAX));
        match nested_value::<(), WITHIN>(bytes, self.at, depth, &mut ()) {
            Some(step) => self.finish(step),
            None => Err(ScanError::TooDeep),
        }
    }

    /// Consumes one value, of any depth for which `outer` has room. Each level uses one bit.
    pub(crate) fn value_within(&mut self, outer: &mut impl Outer) -> Result<(), ScanError> {
        let bytes = self.text.as_bytes();
        match nested_value::<_, false>(bytes, self.at, DEPTH_MAX, outer) {
            Some(step) => self.finish(step),
            None => Err(ScanError::TooDeep),
        }
    }

    /// Consumes one value, of any depth, of text that is known to be JSON. On other text it stops
    /// at an unspecified position.
    pub(crate) fn trusted_value(&mut self) {
        self.trusted_value_after("");
    }

    /// Like [`trusted_value`](Self::trusted_value), but skips `start` if the value starts with it:
    /// an opening brace and complete members, the last of which is not a number.
    pub(crate) fn trusted_value_after(&mut self, start: &str) {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        if self.peek() == Some(b'"') {
            self.at += 1;
            self.trusted_string();
            return;
        }
        if !start.is_empty()
            && bytes.get(self.at..).unwrap_or_default().starts_with(start.as_bytes())
        {
            self.at += start.len();
            open = 1;
        }
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    self.trusted_string();
                }
                b'{' | b'[' => {
                    self.at += 1;
                    open += 1;
                    continue;
                }
                b'}' | b']' => {
                    self.at += 1;
                    open = open.saturating_sub(1);
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    // The value is a number or a literal. Its end does not matter inside a
                    // container.
                    self.at += 1;
                    if open == 0 {
                        while let Some(
                            b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z',
                        ) = bytes.get(self.at)
                        {
                            self.at += 1;
                        }
                    }
                }
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Consumes the rest of a valid string after its opening quote.
    fn trusted_string(&mut self) {
        self.at = string(self.text.as_bytes(), self.at, &mut false).unwrap_or(self.text.len());
    }
}

/// Consumes one value, and returns `None` if it is nested too deeply. Each time that `depth` is
/// reached, the set of open containers is pushed to `outer` and a new one starts. If `WITHIN`,
/// consumes the rest of an object after a member.
fn nested_value<O: Outer, const WITHIN: bool>(
    bytes: &[u8],
    mut at: usize,
    depth: usize,
    outer: &mut O,
) -> Option<Step> {
    macro_rules! advance {
        ($step:expr) => {
            match $step {
                Ok(after) => after,
                failed => return Some(failed),
            }
        };
    }

    let (mut open, mut objects): (_, Nesting) = if WITHIN { (1, 1) } else { (0, 0) };
    let mut ended = WITHIN;
    loop {
        at = skip_space(bytes, at);
        at = advance!(match bytes.get(at) {
            _ if WITHIN && core::mem::take(&mut ended) => Ok(at),
            Some(b'"') => string(bytes, at + 1, &mut false),
            Some(opening @ (b'{' | b'[')) => {
                if open == depth {
                    if !outer.push(objects) {
                        return None;
                    }
                    (open, objects) = (0, 0);
                }
                at = skip_space(bytes, at + 1);
                let object = *opening == b'{';
                if bytes.get(at) == Some(if object { &b'}' } else { &b']' }) {
                    Ok(at + 1)
                } else {
                    open += 1;
                    objects = objects << 1 | Nesting::from(object);
                    if object {
                        at = advance!(key(bytes, at));
                    }
                    continue;
                }
            }
            Some(b'-' | b'0'..=b'9') => number(bytes, at),
            Some(b't') => literal(bytes, at, b"true"),
            Some(b'f') => literal(bytes, at, b"false"),
            Some(b'n') => literal(bytes, at, b"null"),
            _ => Err(at),
        });
        // A value has ended, and the containers around it may end too.
        loop {
            if open == 0 {
                match outer.pop() {
                    Some(around) => (open, objects) = (depth, around),
                    None => return Some(Ok(at)),
                }
            }
            let object = objects & 1 == 1;
            at = skip_space(bytes, at);
            match bytes.get(at) {
                Some(b',') => {
                    at += 1;
                    if object {
                        at = advance!(key(bytes, skip_space(bytes, at)));
                    }
                    break;
                }
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                _ => return Some(Err(at)),
            }
            at += 1;
            open -= 1;
            objects >>= 1;
        }
    }
}

/// The end of a token, or the offset of the byte that is not allowed.
type Step = Result<usize, usize>;

/// Returns the offset of the first byte at or after `at` that is not white space.
#[inline]
fn skip_space(bytes: &[u8], at: usize) -> usize {
    // Peers write compact text, so one comparison usually shows that there is nothing to skip.
    match bytes.get(at) {
        Some(byte) if *byte <= b' ' => some_space_end(bytes, at),
        _ => at,
    }
}

/// The slow path of [`skip_space`], which is inlined in many places.
#[inline(never)]
fn some_space_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Consumes a key and its colon.
#[inline]
fn key(bytes: &[u8], at: usize) -> Step {
    colon(bytes, member_key(bytes, at, &mut false)?)
}

#[inline]
fn member_key(bytes: &[u8], at: usize, escaped: &mut bool) -> Step {
    if bytes.get(at) == Some(&b'"') { string(bytes, at + 1, escaped) } else { Err(at) }
}

#[inline]
fn colon(bytes: &[u8], at: usize) -> Step {
    let at = skip_space(bytes, at);
    if bytes.get(at) == Some(&b':') { Ok(at + 1) } else { Err(at) }
}

fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Step {
    let rest = bytes.get(at..).unwrap_or_default();
    let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
    if same == word.len() { Ok(at + same) } else { Err(at + same) }
}

fn number(bytes: &[u8], mut at: usize) -> Step {
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    if bytes.get(at) == Some(&b'0') {
        // A digit after a leading zero is an unexpected byte after the value.
        at += 1;
    } else {
        at = digits(bytes, at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

/// Consumes one or more digits.
#[inline]
fn digits(bytes: &[u8], start: usize) -> Step {
    let mut at = start;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == start { Err(at) } else { Ok(at) }
}

/// Consumes the rest of a string after its opening quote, including its closing quote. Sets
/// `escaped` if the string contains escapes.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn string(bytes: &[u8], at: usize, escaped: &mut bool) -> Step {
    // The keys of an envelope are shorter than a machine word.
    let mut at = at;
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match plain_in_word(word) {
            Some(count) if word.get(count) == Some(&b'"') => return Ok(at + count + 1),
            Some(count) => at += count,
            None => at += word.len(),
        }
    }
    long_string(bytes, at, escaped)
}

/// The slow path of [`string`], for a string that is long or contains escapes.
#[inline(never)]
fn long_string(bytes: &[u8], mut at: usize, escaped: &mut bool) -> Step {
    for _ in 0..WORDS_FIRST {
        match bytes.get(at..).and_then(<[u8]>::first_chunk).map(plain_in_word) {
            Some(None) => at += size_of::<u64>(),
            Some(Some(count)) if bytes.get(at + count) == Some(&b'"') => return Ok(at + count + 1),
            _ => break,
        }
    }
    longer_string(bytes, at, escaped)
}

/// The slow path of [`long_string`].
#[inline(never)]
fn longer_string(bytes: &[u8], mut at: usize, escaped: &mut bool) -> Step {
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => {
                *escaped = true;
                at = match bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at + 2,
                    Some(b'u') => code_point(bytes, at + 2)?,
                    _ => return Err(at + 1),
                }
            }
            _ => return Err(at),
        }
    }
}

/// Consumes the digits of a `\u` escape, and a second escape if the first is half of a surrogate
/// pair.
#[inline(never)]
fn code_point(bytes: &[u8], at: usize) -> Step {
    let (unit, at) = code_unit(bytes, at)?;
    match unit {
        0xD800..=0xDBFF => {
            if bytes.get(at) != Some(&b'\\') || bytes.get(at + 1) != Some(&b'u') {
                return Err(at);
            }
            match code_unit(bytes, at + 2)? {
                (0xDC00..=0xDFFF, at) => Ok(at),
                (_, at) => Err(at),
            }
        }
        0xDC00..=0xDFFF => Err(at),
        _ => Ok(at),
    }
}

/// Consumes four hexadecimal digits and returns their value.
fn code_unit(bytes: &[u8], start: usize) -> Result<(u16, usize), usize> {
    let mut unit = 0;
    for at in start..start + 4 {
        let digit = bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16)).ok_or(at)?;
        unit = unit << 4 | digit as u16;
    }
    Ok((unit, start + 4))
}

/// Returns how many bytes at the start of `bytes` are plain, meaning not a quote, a backslash or a
/// control character.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    if is_short_and_plain(bytes) {
        return bytes.len();
    }
    let mut at = 0;
    for _ in 0..WORDS_FIRST {
        match bytes.get(at..).and_then(<[u8]>::first_chunk).map(plain_in_word) {
            Some(None) => at += size_of::<u64>(),
            Some(Some(count)) => return at + count,
            None => return at + plain_bytes(bytes.get(at..).unwrap_or_default()),
        }
    }
    plain_end(bytes, at)
}

/// Returns whether `bytes` are at most two words long, as most keys are, and all plain.
#[inline]
fn is_short_and_plain(bytes: &[u8]) -> bool {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            bytes.len() <= 2 * first.len() && special_in_word(first) | special_in_word(last) == 0
        }
        _ => plain_bytes(bytes) == bytes.len(),
    }
}

/// Most strings are a few words long; scanning in chunks and blocks pays only for longer ones.
const WORDS_FIRST: usize = if CHUNKS_ARE_COMPARED { 2 } else { 4 };

/// Whether the processor compares the bytes of a chunk in one instruction.
const CHUNKS_ARE_COMPARED: bool =
    cfg!(any(target_feature = "sse2", target_feature = "neon", target_feature = "simd128"));

/// Returns the offset of the first byte at or after `start` that is not plain.
#[inline(always)]
fn plain_end(bytes: &[u8], start: usize) -> usize {
    const CHUNKS_FIRST: usize = 4;
    let (mut rest, mut chunks) = (bytes.get(start..).unwrap_or_default(), 0);
    while CHUNKS_ARE_COMPARED && let Some((chunk, after)) = rest.split_first_chunk() {
        let special = specials(chunk);
        if special != 0 {
            return bytes.len() - rest.len() + special.trailing_zeros() as usize / 8;
        }
        rest = after;
        chunks += 1;
        if chunks == CHUNKS_FIRST {
            rest = after_plain_blocks(rest);
        }
    }
    if !CHUNKS_ARE_COMPARED {
        rest = after_plain_blocks(rest);
    }
    while let Some((word, after)) = rest.split_first_chunk() {
        if let Some(count) = plain_in_word(word) {
            return bytes.len() - rest.len() + count;
        }
        rest = after;
    }
    bytes.len() - rest.len() + plain_bytes(rest)
}

/// Skips complete blocks of plain bytes.
#[inline(never)]
fn after_plain_blocks(mut rest: &[u8]) -> &[u8] {
    while let Some((block, after)) = rest.split_first_chunk()
        && is_plain_block::<128>(block)
    {
        rest = after;
    }
    rest
}

/// Handles less than one word.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let halves =
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
        if plain_in_word(&halves.to_le_bytes()).is_none() {
            return bytes.len();
        }
    }
    bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len())
}

const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// Returns the number of plain bytes before the first other byte, or `None` if all are plain.
#[inline]
fn plain_in_word(word: &[u8; 8]) -> Option<usize> {
    let special = special_in_word(word);
    if special == 0 { None } else { Some(special.trailing_zeros() as usize / 8) }
}

/// Returns ones for each byte that is not plain, and zeros for the others. Written so that the
/// compiler vectorizes it.
#[inline(always)]
fn specials(chunk: &[u8; 16]) -> u128 {
    let lowest = chunk.map(|byte| (byte ^ 0x02).saturating_sub(0x20).min(byte ^ b'\\'));
    u128::from_le_bytes(lowest.map(|byte| if byte == 0 { u8::MAX } else { 0 }))
}

/// Returns a word whose lowest bit is in the first byte that is not plain. It is zero if all are
/// plain.
#[inline]
const fn special_in_word(word: &[u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*word);
    // The quote, 0x22, is flipped to 0x20, right above the control characters, and 0x20 to 0x22, so
    // that one comparison finds both kinds. `x - n & !x` has its high bit set if `x < n`, and the
    // lowest such bit is never a false one caused by a borrow.
    let flipped = word ^ (ONES * 0x02);
    let below = flipped.wrapping_sub(ONES * 0x21) & !flipped;
    let slash = word ^ (ONES * b'\\' as u64);
    let slash = slash.wrapping_sub(ONES) & !slash;
    (below | slash) & HIGHS
}

/// Written so that the compiler vectorizes it: the minimum takes one instruction per vector, and is
/// zero for a special byte.
#[inline(always)]
fn is_plain_block<const LENGTH: usize>(block: &[u8; LENGTH]) -> bool {
    let mut special = false;
    for byte in block {
        let below = (*byte ^ 0x02).saturating_sub(0x20);
        special |= below.min(*byte ^ b'\\') == 0;
    }
    !special
}

#[cfg(test)]
mod tests;
