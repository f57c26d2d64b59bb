//! Operations as lines of text, so that seeds are readable and the fuzzer can rearrange them.

use std::time::Duration;

/// The most operations of one input: enough for any state, and few enough to be quick.
const OPERATIONS_MAX: usize = 200;

/// One line of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    /// The first byte, which selects the operation. For a line that begins a JSON text it is a
    /// brace or bracket.
    pub(super) verb: u8,
    /// The number that follows the verb; 0 if absent.
    pub(super) number: usize,
    /// The text after the number and one space; the whole line if it is a JSON text.
    pub(super) text: &'a [u8],
}

impl<'a> Operation<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (&verb, rest) = line.split_first()?;
        if matches!(verb, b'{' | b'[') {
            return Some(Self { verb: b'{', number: 0, text: line });
        }
        let digits = rest.iter().take(7).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at(digits);
        let number = digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
        Some(Self { verb, number, text: rest.strip_prefix(b" ").unwrap_or(rest) })
    }

    /// Returns the text as UTF-8; empty if it is invalid.
    pub(super) fn text(&self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }

    /// Returns the number as milliseconds.
    pub(super) const fn duration(&self) -> Duration {
        Duration::from_millis(self.number as u64)
    }

    /// Returns an index into `count` items, counted from the latest.
    pub(super) fn place(&self, count: usize) -> Option<usize> {
        (count > 0).then(|| count - 1 - self.number % count)
    }
}

/// Splits the input into the first line, which contains the settings, and the operations.
pub(super) fn script(bytes: &[u8]) -> (&[u8], impl Iterator<Item = Operation<'_>> + Clone) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (settings, rest) = bytes.split_at(end);
    let operations = rest.split(|byte| *byte == b'\n').filter_map(Operation::parse);
    (settings, operations.take(OPERATIONS_MAX))
}
