//! Deterministic mutations of seeds.

use std::fs;
use std::path::Path;

use seeded_random::Random;

/// The longest input, in bytes: as in libFuzzer.
const LENGTH_MAX: usize = 4096;

/// Creates inputs from seeds.
pub(crate) struct Mutation {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    random: Random,
}

impl Mutation {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, dictionary: &Path) -> Self {
        let text = fs::read_to_string(dictionary).expect("the dictionary is committed");
        Self { seeds, words: text.lines().filter_map(word).collect(), random: Random::new(1) }
    }

    /// Returns the next input.
    pub(crate) fn input(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..=self.random.index(4) {
            self.change(&mut input);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.random.index(7) {
            0 => {
                let (at, byte) = (self.random.index(input.len()), self.random.index(256));
                input.splice(at..(at + 1).min(input.len()), [byte as u8]);
            }
            1 => {
                let (at, word) =
                    (self.random.index(input.len() + 1), self.random.index(self.words.len()));
                let word = self.words[word].clone();
                input.splice(at..at, word);
            }
            2 => {
                let (at, word) =
                    (self.random.index(input.len() + 1), self.random.index(self.words.len()));
                let word = self.words[word].clone();
                input.splice(at..(at + word.len()).min(input.len()), word);
            }
            3 => {
                let range = self.range(input.len());
                input.drain(range);
            }
            4 => {
                let piece = input[self.range(input.len())].to_vec();
                let at = self.random.index(input.len() + 1);
                input.splice(at..at, piece);
            }
            // Repeat a line of a script, often enough to reach a limit.
            5 => {
                let lines: Vec<_> = input.split_inclusive(|byte| *byte == b'\n').collect();
                let line = lines
                    .get(self.random.index(lines.len()))
                    .map_or_else(Vec::new, |it| it.to_vec());
                let times = 1 + self.random.index(80);
                input.extend(line.iter().cycle().take((line.len() * times).min(LENGTH_MAX)));
            }
            // Append the end of another seed.
            _ => {
                let other = self.seed();
                let at = self.random.index(input.len() + 1);
                let from = self.random.index(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }

    fn seed(&mut self) -> Vec<u8> {
        let at = self.random.index(self.seeds.len());
        self.seeds[at].clone()
    }

    fn range(&mut self, length: usize) -> core::ops::Range<usize> {
        let start = self.random.index(length + 1);
        start..start + self.random.index((length - start).min(64) + 1)
    }
}

/// Parses a line of a libFuzzer dictionary: a quoted word, in which `\xAB` is a byte.
fn word(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut word = Vec::new();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'\\').then(|| tail.split_first()).flatten();
        let (byte, tail) = match escaped {
            Some((b'x', digits)) => {
                let (digits, tail) = digits.split_at_checked(2)?;
                (u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?, tail)
            }
            Some((&byte, tail)) => (byte, tail),
            None => (byte, tail),
        };
        word.push(byte);
        rest = tail;
    }
    Some(word)
}
