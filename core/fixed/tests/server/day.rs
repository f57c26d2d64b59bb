//! A day of abuse on a serial line, in simulated time. The server has no memory but what it was lent,
//! so nothing can wear out slowly but its state: it never panics, which would reset a device, and
//! answers a reasonable request after any abuse.
//!
//! `MCP_SIM_MINUTES` sets the number of minutes: ten, or 1,440 in `.ci/simulation`.

use mcp_sansio_fixed::{Connection, Fault};
use seeded_random::Random;
use serde_json::Value;

use crate::answers::{MODERN, corpus, damage};
use crate::offers::Fixed;

/// Bytes per second, in both directions together, as a message is answered before the next is read:
/// 115,200 bits per second, of which a byte takes ten.
const BYTES_PER_SECOND: u64 = 11_520;

const LINE: usize = 1024;
const OUTPUT: usize = 768;

type Device<'b> = Connection<'b, Fixed<0>>;

/// A serial line, and what has happened on it.
struct Line<'b> {
    device: Device<'b>,
    bytes: u64,
    lines_in: u64,
    lines_out: u64,
    /// How often each fault was reported, in the order of [`FAULTS`].
    faults: [u64; FAULTS.len()],
}

const FAULTS: [&str; 4] = ["malformed", "refused", "overlong", "answers that do not fit"];

impl Line<'_> {
    /// Sends bytes in random pieces, and returns the lines that the device writes. They are read in
    /// random pieces, too.
    fn send(&mut self, bytes: &[u8], random: &mut Random) -> Vec<Value> {
        let (mut rest, mut written) = (bytes, Vec::new());
        while !rest.is_empty() {
            let piece = rest.len().min(1 + random.index(200));
            let taken = self.device.feed(&rest[..piece]);
            rest = &rest[taken..];
            while let Some(part) = self.device.poll_transmit() {
                let count = part.len().min(1 + random.index(300));
                written.extend_from_slice(&part[..count]);
                self.device.advance(count);
                self.note_fault();
            }
            self.note_fault();
        }
        self.bytes += (bytes.len() + written.len()) as u64;
        let text = core::str::from_utf8(&written).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        let lines: Vec<_> =
            text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        self.lines_out += lines.len() as u64;
        self.lines_in += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        lines
    }

    fn note_fault(&mut self) {
        if let Some(fault) = self.device.take_fault() {
            let index = match fault {
                Fault::Malformed(_) => 0,
                Fault::Refused(_) => 1,
                Fault::Frame(_) => 2,
                Fault::OutputFull { .. } => 3,
                other => panic!("an unknown fault: {other:?}"),
            };
            self.faults[index] += 1;
        }
    }

    /// Checks that a request of the modern era, which needs no session, gets its result.
    fn check(&mut self, random: &mut Random) {
        let id = self.lines_in;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"a":{id}}},{MODERN}}}}}"#
        );
        let answers = self.send((call + "\n").as_bytes(), random);
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!((&answer["id"], text), (&id.into(), &(2 * id).to_string().into()));
    }
}

/// Returns lines that a malicious client sends at once.
fn abuse(corpus: &[String], random: &mut Random) -> Vec<u8> {
    let message = |random: &mut Random| random.pick(corpus).expect("messages").clone();
    let mut bytes = match random.index(16) {
        0..6 => message(random).into_bytes(),
        6..11 => damage(message(random).into_bytes(), random),
        11 => {
            let length = random.index(2 * LINE);
            (0..length).map(|_| random.one_of(*b"{}[]\",:0e-\\ntfal\x00\xff u\r")).collect()
        }
        12 => vec![random.one_of(*b"x[{\"\x00"); random.index(8 * LINE)],
        13 => {
            let count = 1 + random.index(8);
            let batch: Vec<_> = (0..count).map(|_| message(random)).collect();
            format!("[{}]", batch.join(",")).into_bytes()
        }
        14 => {
            let length = random.index(LINE / 8);
            let text = "\\u0001".repeat(length);
            let params = format!(r#""name":"echo","arguments":{{"text":"{text}"}},{MODERN}"#);
            let head = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params""#;
            format!("{head}:{{{params}}}}}").into_bytes()
        }
        _ => [r#"{"jsonrpc":"2.0","id":"flood","method":"ping"}"#; 50].join("\n").into_bytes(),
    };
    bytes.push(b'\n');
    bytes
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures of a long run")]
fn a_reasonable_request_is_served_after_any_abuse() {
    let minutes = std::env::var("MCP_SIM_MINUTES").map_or(10, |it| it.parse().expect("a number"));
    let (corpus, mut random) = (corpus(), Random::new(minutes));
    let (mut line, mut output) = ([0; LINE], [0; OUTPUT]);
    let device = Connection::new(Fixed, &mut line, &mut output).expect("large enough");
    let mut line = Line { device, bytes: 0, lines_in: 0, lines_out: 0, faults: [0; FAULTS.len()] };
    while line.bytes < minutes * 60 * BYTES_PER_SECOND {
        let bytes = abuse(&corpus, &mut random);
        let count = bytes.iter().filter(|byte| **byte == b'\n').count();
        let answers = line.send(&bytes, &mut random);
        // A line is answered at most once; the only overlong one was reported before its end.
        assert!(answers.len() <= count, "{}", String::from_utf8_lossy(&bytes));
        line.check(&mut random);
    }
    println!("{minutes} min at 115,200 bit/s: {} lines in, {} out", line.lines_in, line.lines_out);
    for (name, count) in FAULTS.iter().zip(line.faults) {
        println!("{count:>14}  {name}");
        assert!(count > 0, "never {name}");
    }
}
