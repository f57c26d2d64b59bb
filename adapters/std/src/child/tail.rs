use std::collections::VecDeque;

/// The last lines of a text that comes in pieces.
#[derive(Debug)]
pub(super) struct Tail {
    lines: VecDeque<Vec<u8>>,
    lines_max: usize,
    /// The last line has ended, so more begins another.
    ended: bool,
}

/// What is kept of one line, in bytes. 4 KiB: a message and its context; a program that prints
/// without line ends is not kept whole.
const LINE_LENGTH_MAX: usize = 4096;

impl Tail {
    pub(super) const fn new(lines_max: usize) -> Self {
        Self { lines: VecDeque::new(), lines_max, ended: true }
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        if self.lines_max == 0 {
            return;
        }
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            if self.ended {
                let mut line = Vec::new();
                if self.lines.len() == self.lines_max {
                    line = self.lines.pop_front().unwrap_or_default();
                    line.clear();
                }
                self.lines.push_back(line);
            }
            self.ended = piece.ends_with(b"\n");
            let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
            let Some(line) = self.lines.back_mut() else { continue };
            let room = LINE_LENGTH_MAX - line.len();
            line.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// The lines without line ends; what is not UTF-8 is replaced.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = |line: &Vec<u8>| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            String::from_utf8_lossy(line).into_owned()
        };
        self.lines.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_however_they_come() {
        let text = b"one\ntwo\r\n\nfour\nfi\xffve";
        for piece in 1..=text.len() {
            let mut tail = Tail::new(4);
            text.chunks(piece).for_each(|piece| tail.push(piece));
            assert_eq!(tail.lines(), ["two", "", "four", "fi\u{fffd}ve"]);
            tail.push(b"\n");
            assert_eq!(tail.lines().len(), 4);
            tail.push(b"six");
            assert_eq!(tail.lines(), ["", "four", "fi\u{fffd}ve", "six"]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_kept_up_to_its_bound() {
        let mut tail = Tail::new(2);
        for _ in 0..3 {
            tail.push(&[b'x'; LINE_LENGTH_MAX]);
        }
        tail.push(b"\nend");
        let lines = tail.lines();
        assert_eq!((lines[0].len(), lines[1].as_str()), (LINE_LENGTH_MAX, "end"));
        let mut none = Tail::new(0);
        none.push(b"a\nb");
        assert_eq!(none.lines(), [""; 0]);
    }
}
