//! A JSON scanner: checks the grammar and finds where values end, without building anything.
//!
//! It accepts what RFC 8259 accepts, except lone surrogates in escapes: these have no decoded form,
//! so whoever decodes the string later would fail. Each byte is looked at a bounded number of
//! times, and nesting costs a bit, not a stack frame.

/// Why a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanError {
    /// The byte at `at` cannot stand there, or the text ends there too early.
    Syntax { at: usize },
    /// More arrays and objects within each other than allowed.
    TooDeep,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// The bits of the set of open containers: one for an object, zero for an array. Its width is the
/// greatest depth.
type Nesting = u128;

/// The greatest depth that a scan can follow.
pub(super) const DEPTH_MAX: usize = Nesting::BITS as usize - 1;

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The offset of the next byte.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The text from `start` to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    /// That the next byte cannot stand where it stands.
    pub(super) const fn unexpected<T>(&self) -> Result<T, ScanError> {
        Err(ScanError::Syntax { at: self.at })
    }

    /// The next byte that is not white space, left in place.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Goes past the byte that [`Scanner::peek`] has shown.
    #[inline]
    pub(super) const fn bump(&mut self) {
        self.at += 1;
    }

    /// Goes past `byte` if it is the next one after white space.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// That nothing but white space is left.
    pub(super) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.unexpected(),
        }
    }

    /// Goes past the key of a member and its colon; the key as written, without its quotes.
    #[inline]
    pub(super) fn key(&mut self) -> Result<&'a str, ScanError> {
        if !self.eat(b'"') {
            return self.unexpected();
        }
        let start = self.at;
        self.string()?;
        let key = self.text.get(start..self.at - 1).unwrap_or("");
        if !self.eat(b':') {
            return self.unexpected();
        }
        Ok(key)
    }

    /// Goes past one value with at most `depth` levels of nesting in it.
    pub(super) fn value(&mut self, depth: usize) -> Result<(), ScanError> {
        let depth = depth.min(DEPTH_MAX);
        let mut open = 0;
        let mut objects: Nesting = 0;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.string()?;
                }
                Some(opening @ (b'{' | b'[')) => {
                    if open == depth {
                        return Err(ScanError::TooDeep);
                    }
                    self.at += 1;
                    let object = opening == b'{';
                    if !self.eat(if object { b'}' } else { b']' }) {
                        open += 1;
                        objects = objects << 1 | Nesting::from(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return self.unexpected(),
            }
            // A value has ended; so may the containers around it.
            loop {
                if open == 0 {
                    return Ok(());
                }
                let object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ => return self.unexpected(),
                }
                self.at += 1;
                open -= 1;
                objects >>= 1;
            }
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
        self.at += same;
        if same == word.len() { Ok(()) } else { self.unexpected() }
    }

    fn number(&mut self) -> Result<(), ScanError> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if bytes.get(self.at) == Some(&b'0') {
            // No digit follows a leading zero: it would be an unexpected byte after the value.
            self.at += 1;
        } else {
            self.digits()?;
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Goes past one or more digits.
    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
        if self.at == start { self.unexpected() } else { Ok(()) }
    }

    /// Goes past the rest of a string whose opening quote is behind, and its closing quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<(), ScanError> {
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
            self.at += plain_prefix(rest);
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return self.unexpected(),
            }
        }
    }

    /// Goes past an escape, whose backslash is the next byte.
    fn escape(&mut self) -> Result<(), ScanError> {
        self.at += 1;
        match self.text.as_bytes().get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.code_unit()? {
                0xD800..=0xDBFF => {
                    if self.text.as_bytes().get(self.at) != Some(&b'\\')
                        || self.text.as_bytes().get(self.at + 1) != Some(&b'u')
                    {
                        return self.unexpected();
                    }
                    self.at += 1;
                    match self.code_unit()? {
                        0xDC00..=0xDFFF => Ok(()),
                        _ => self.unexpected(),
                    }
                }
                0xDC00..=0xDFFF => self.unexpected(),
                _ => Ok(()),
            },
            _ => self.unexpected(),
        }
    }

    /// Goes past `uXXXX`; the number that it spells.
    fn code_unit(&mut self) -> Result<u16, ScanError> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.text.as_bytes().get(self.at).map(|byte| char::from(*byte));
            let Some(digit) = digit.and_then(|digit| digit.to_digit(16)) else {
                return self.unexpected();
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    /// Goes past one value of a text that is known to be JSON, of any depth. On other text it
    /// stops somewhere.
    pub(super) fn trusted_value(&mut self) {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        self.peek();
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
                    // A number or a word; inside a container its end is not worth finding.
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

    /// Goes past the rest of a string that is known to be right, its opening quote being behind.
    pub(super) fn trusted_string(&mut self) {
        if self.string().is_err() {
            self.at = self.text.len();
        }
    }
}

/// How many bytes at the start of `bytes` stand for themselves in a string: no quote, no
/// backslash, no control character.
#[inline]
pub(super) fn plain_prefix(bytes: &[u8]) -> usize {
    // Most strings are a few words long; a block pays only when there is much of it.
    const WORDS_FIRST: usize = 4;
    let mut rest = bytes;
    for _ in 0..WORDS_FIRST {
        let Some((word, tail)) = rest.split_first_chunk() else {
            return bytes.len() - rest.len() + plain_bytes(rest);
        };
        if let Some(count) = plain_in_word(word) {
            return bytes.len() - rest.len() + count;
        }
        rest = tail;
    }
    bytes.len() - rest.len() + plain_prefix_long(rest)
}

#[inline(never)]
fn plain_prefix_long(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk()
        && is_plain_block(block)
    {
        rest = tail;
    }
    while let Some((word, tail)) = rest.split_first_chunk() {
        if let Some(count) = plain_in_word(word) {
            return bytes.len() - rest.len() + count;
        }
        rest = tail;
    }
    bytes.len() - rest.len() + plain_bytes(rest)
}

fn plain_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len())
}

const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// The number of plain bytes before the first other one; `None` if all are plain.
#[inline]
fn plain_in_word(word: &[u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*word);
    // The quote, 0x22, is flipped to 0x20, right above the control characters, and 0x20 to 0x22: so
    // one comparison finds both kinds. `x - n & !x` has its high bit set if `x < n`, and the lowest
    // such bit is never the false one that a borrow makes.
    let flipped = word ^ (ONES * 0x02);
    let below = flipped.wrapping_sub(ONES * 0x21) & !flipped;
    let slash = word ^ (ONES * b'\\' as u64);
    let slash = slash.wrapping_sub(ONES) & !slash;
    let found = (below | slash) & HIGHS;
    if found == 0 { None } else { Some(found.trailing_zeros() as usize / 8) }
}

/// Written so that the compiler makes vector instructions of it.
#[inline]
fn is_plain_block(block: &[u8; 64]) -> bool {
    let mut other = 0;
    for byte in block {
        other |= u8::from(*byte ^ 0x02 < 0x21) | u8::from(*byte == b'\\');
    }
    other == 0
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    fn scan(text: &str, depth: usize) -> Result<(), ScanError> {
        let mut scanner = Scanner::new(text);
        scanner.value(depth)?;
        scanner.end()
    }

    #[test]
    fn accepts_the_grammar() {
        for text in [
            "0",
            "-0",
            "10",
            "-1.5e+10",
            "1E5",
            "1e-5",
            "true",
            "false",
            "null",
            "\"\"",
            " [ ] ",
            "{ }",
            "[[],{}]",
            "{\"a\":{\"b\":[1,\"c\",null]},\"d\":\"\"}",
            r#""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#,
            "\"\u{7f}é😀\"",
            "\t\n\r 1 \t\n\r",
        ] {
            assert_eq!(scan(text, 9), Ok(()), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_in_the_grammar_and_says_where() {
        for (text, at) in [
            ("", 0),
            ("01", 1),
            ("-", 1),
            ("1.", 2),
            (".5", 0),
            ("1e", 2),
            ("+1", 0),
            ("tru", 3),
            ("trux", 3),
            ("nul", 3),
            ("\"", 1),
            ("\"a\nb\"", 2),
            (r#""\x""#, 2),
            (r#""\u12g4""#, 5),
            (r#""\uDC00""#, 7),
            (r#""\uD800""#, 7),
            (r#""\uD800\n""#, 7),
            (r#""\uD800\u0041""#, 13),
            ("[1,]", 3),
            ("[,1]", 1),
            ("[1 2]", 3),
            ("{\"a\"}", 4),
            ("{\"a\":}", 5),
            ("{a:1}", 1),
            ("{\"a\":1,}", 7),
            ("[}", 1),
            ("{]", 1),
            ("[1}", 2),
            ("{\"a\":1]", 6),
            ("1 2", 2),
            ("[", 1),
            ("\u{feff}1", 0),
        ] {
            assert_eq!(scan(text, 9), Err(ScanError::Syntax { at }), "{text}");
        }
    }

    #[test]
    fn follows_nesting_up_to_the_limit() {
        for depth in [0, 1, 64, DEPTH_MAX] {
            let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(scan(&nested(depth), depth), Ok(()));
            assert_eq!(scan(&nested(depth + 1), depth), Err(ScanError::TooDeep));
        }
        assert_eq!(scan(&"{\"a\":".repeat(1000), usize::MAX), Err(ScanError::TooDeep));
    }

    #[test]
    fn every_special_byte_is_found_at_every_offset() {
        for length in 0..200 {
            for special in (0..0x20).chain([b'"', b'\\']) {
                let mut bytes = vec![b' '; 200];
                bytes[length] = special;
                assert_eq!(plain_prefix(&bytes), length);
            }
        }
        for plain in 0..=u8::MAX {
            let expected = if is_plain(plain) { 100 } else { 0 };
            assert_eq!(plain_prefix(&[plain; 100]), expected);
        }
    }

    #[test]
    fn a_trusted_scan_ends_where_a_checked_one_ends() {
        for text in [
            "1,",
            "-1.5e+10]",
            "true}",
            "null ",
            "\"a\\\"b\",",
            "{} ",
            "[[1,{\"]\":2}]]]",
            "{\"a\":[1,2],\"b\":\"}\"},",
            "[ 1 , 2 ] ,",
        ] {
            let (mut checked, mut trusted) = (Scanner::new(text), Scanner::new(text));
            checked.value(9).expect("each starts with a value");
            trusted.trusted_value();
            assert_eq!(trusted.at(), checked.at(), "{text}");
        }
    }

    #[test]
    fn a_trusted_scan_of_garbage_ends() {
        for text in ["", "]", "}}", "\"", "\"\\", "[[", "{\"a\"", "é", ",", "\u{0}"] {
            let mut scanner = Scanner::new(text);
            scanner.trusted_value();
            assert!(scanner.at() <= text.len());
        }
        let long = String::from_utf8(vec![b'['; 100_000]).expect("ASCII");
        Scanner::new(&long).trusted_value();
    }
}
