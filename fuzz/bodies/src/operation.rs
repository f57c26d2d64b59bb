//! Operations as lines of text, so that seeds can be read and the fuzzer can move them about.

use std::time::Duration;

/// The most operations of one input: enough for any state, and few enough to be quick.
const OPERATIONS_MAX: usize = 200;

/// One line of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    /// Its first byte, which says what is done. A line that begins a JSON text is done with it.
    pub(super) verb: u8,
    /// The number that follows the verb; 0 where there is none.
    pub(super) number: usize,
    /// What follows the number and one space; the whole line where it is a JSON text.
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

    /// The text as UTF-8; empty where it is none.
    pub(super) fn text(&self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }

    /// The number as milliseconds.
    pub(super) const fn duration(&self) -> Duration {
        Duration::from_millis(self.number as u64)
    }

    /// The place of one of `count` things, counted from the latest.
    pub(super) fn place(&self, count: usize) -> Option<usize> {
        (count > 0).then(|| count - 1 - self.number % count)
    }
}

/// The first line, which is for settings, and the operations after it.
pub(super) fn script(bytes: &[u8]) -> (&[u8], impl Iterator<Item = Operation<'_>> + Clone) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (settings, rest) = bytes.split_at(end);
    let operations = rest.split(|byte| *byte == b'\n').filter_map(Operation::parse);
    (settings, operations.take(OPERATIONS_MAX))
}
