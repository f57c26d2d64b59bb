//! Newline framing: the decoder compared with a plain search for line endings.

use mcp_sansio::framing::{FrameError, LineDecoder};

use super::chunk_lengths::random_lengths;

/// However a stream is split, the frames are those of a plain search for line endings. The first
/// byte sets the limit, the second the pattern of the chunks.
pub fn lines(bytes: &[u8]) {
    let [limit, pattern, stream @ ..] = bytes else { return };
    let limit = usize::from(*limit).max(1);
    let expected = plain_lines(stream, limit);
    let mut random = random_lengths(*pattern, 2 * limit);
    let pieces: [&mut dyn FnMut() -> usize; 3] = [&mut || usize::MAX, &mut || 1, &mut random];
    let mut storage = vec![0; limit];
    for piece in pieces {
        assert_eq!(decode(LineDecoder::lent(&mut storage), stream, piece), expected);
        assert_eq!(decode(LineDecoder::growing(limit), stream, piece), expected);
    }
}

type Frames = Vec<Result<Vec<u8>, FrameError>>;

fn decode(mut decoder: LineDecoder<'_>, stream: &[u8], piece: &mut dyn FnMut() -> usize) -> Frames {
    let mut frames = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let piece = piece().min(rest.len());
        let taken = decoder.feed(&rest[..piece]);
        assert!(taken > 0, "no space although every frame was taken");
        rest = &rest[taken..];
        while let Some(frame) = decoder.next_frame() {
            frames.push(frame.map(Vec::from));
        }
    }
    frames.extend(decoder.handle_eof().map(|rest| rest.map(Vec::from)));
    frames
}

fn plain_lines(stream: &[u8], limit: usize) -> Frames {
    let mut frames = Vec::new();
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let ended = line.strip_suffix(b"\n");
        let content = ended.unwrap_or(line);
        // A line that fills the buffer without its line ending is already too long.
        if line.len() > limit || (ended.is_none() && line.len() == limit) {
            frames.push(Err(FrameError::TooLong { limit }));
        } else if content.iter().all(|byte| b" \t\r".contains(byte)) {
        } else if ended.is_none() {
            let rest = line.trim_ascii_end();
            if !rest.is_empty() {
                let cut = FrameError::Truncated { length: line.len() };
                frames.push(if is_whole(rest) { Ok(rest.to_vec()) } else { Err(cut) });
            }
        } else {
            frames.push(Ok(content.strip_suffix(b"\r").unwrap_or(content).to_vec()));
        }
    }
    frames
}

/// Returns whether the object or array with which a line ends has begun in it.
fn is_whole(line: &[u8]) -> bool {
    let (mut depth, mut rest) = (0_usize, line);
    while let [byte, more @ ..] = rest {
        rest = more;
        match byte {
            b'"' => {
                // An escape hides the byte after it.
                while let [byte, more @ ..] = rest
                    && *byte != b'"'
                {
                    rest = if *byte == b'\\' { more.get(1..).unwrap_or_default() } else { more };
                }
                let [_end, more @ ..] = rest else { return false };
                rest = more;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth == 0 && matches!(line.last(), Some(b'}' | b']'))
}
