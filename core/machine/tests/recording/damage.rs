use mcp_sansio::recording::{FORMAT, Replay, ReplayError};
use proptest::prelude::*;

use crate::golden::GOLDEN;
use crate::short;

/// Replays a recording. Returns the number of steps and the error that ended it.
fn play(recording: &[u8]) -> (usize, Option<ReplayError>) {
    let mut replay = match Replay::new(recording) {
        Ok(replay) => replay,
        Err(error) => return (0, Some(error)),
    };
    let mut steps = 0;
    loop {
        match replay.step() {
            Ok(Some(_)) => steps += 1,
            Ok(None) => return (steps, None),
            Err(error) => {
                assert_eq!(replay.step(), Err(error.clone()), "the error is repeated");
                return (steps, Some(error));
            }
        }
    }
}

#[test]
fn the_first_different_output_is_reported() {
    let text = String::from_utf8(short()).unwrap();
    let changed = text.replace(r#""result":{}"#, r#""result":{"a":1}"#);
    assert_ne!(changed, text);
    let (steps, error) = play(changed.as_bytes());
    let Some(ReplayError::Difference(difference)) = error else { panic!("{error:?}") };
    assert_eq!((steps, difference.line), (1, 3));
    assert!(difference.recorded.contains(r#""result":{"a":1}"#), "{difference}");
    assert!(difference.replayed.contains(r#""result":{}"#), "{difference}");
}

#[test]
fn changed_input_shows_as_different_output() {
    let text = String::from_utf8(short()).unwrap();
    let (steps, error) = play(text.replacen(r#""id":1"#, r#""id":2"#, 1).as_bytes());
    assert!(matches!(error, Some(ReplayError::Difference(_))), "{error:?}");
    assert_eq!(steps, 1);
}

#[test]
fn a_truncated_recording_is_replayed_up_to_its_end() {
    let whole = short();
    let lines = whole.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(play(&whole), (lines - 1, None));
    for cut in 0..whole.len() {
        let before = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let at_end = cut > 0 && whole[cut - 1] == b'\n';
        let expected = match before {
            0 if cut == 0 => Some(ReplayError::NotARecording { reason: "it is empty".into() }),
            _ if at_end => None,
            _ => Some(ReplayError::CutShort { line: before + 1 }),
        };
        let played = play(&whole[..cut]);
        assert_eq!(played, (before.saturating_sub(1), expected), "{cut}");
    }
}

#[test]
fn an_unknown_format_is_reported_and_not_read() {
    let (found, known) = (FORMAT + 1, FORMAT);
    let later = format!("{{\"recording\":{found},\"anything\":1}}\n");
    let error = ReplayError::UnknownFormat { found, known };
    assert_eq!(play(later.as_bytes()), (0, Some(error)));
}

#[test]
fn input_that_is_not_a_recording_is_an_error() {
    for text in ["{}\n", "x\n", "\n", "{\"recording\":2}\n", "\u{0}\n", "[]\n"] {
        let (steps, error) = play(text.as_bytes());
        let Some(ReplayError::NotARecording { .. }) = error else {
            panic!("{text:?}: {error:?}");
        };
        assert_eq!(steps, 0);
    }
}

#[test]
fn an_unknown_command_is_an_error() {
    let start = String::from_utf8(short()).unwrap();
    let start = start.lines().next().unwrap();
    for call in [
        r#"{"client_command":{"at":1,"command":"close"}}"#,
        r#"{"server_command":{"at":1,"command":"dance"}}"#,
        r#"{"server_command":{"command":"close"}}"#,
        r#"{"dance":{}}"#,
        r#"{"server_command":{"at":1,"command":{"call":{"method":"no/such","params":{},"options":{}}}}}"#,
        r#"{"message":{"at":1,"frame":{"base64":"?"}}}"#,
        "x",
    ] {
        let (steps, error) = play(format!("{start}\n{call}\n").as_bytes());
        let Some(ReplayError::Damaged { line: 2, .. }) = error else {
            panic!("{call}: {error:?}");
        };
        assert_eq!(steps, 0);
    }
}

/// A change of a recording.
#[derive(Clone, Debug)]
enum Damage {
    Byte(prop::sample::Index, u8),
    Digit(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (at(), b'0'..=b'9').prop_map(|(at, digit)| Damage::Digit(at, digit)),
        at().prop_map(Damage::Remove),
        (at(), at()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
    ]
}

fn damaged(recording: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        recording.split_inclusive(|b| *b == b'\n').map(Into::into).collect();
    for damage in damages {
        let count = lines.len();
        match damage {
            Damage::Byte(at, byte) => {
                let line = &mut lines[at.index(count)];
                let place = at.index(line.len());
                line[place] = *byte;
            }
            // Most numbers are handles, and another number is another handle or an unknown one.
            Damage::Digit(at, digit) => {
                let line = &mut lines[at.index(count)];
                let digits: Vec<usize> =
                    (0..line.len()).filter(|place| line[*place].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    line[digits[at.index(digits.len())]] = *digit;
                }
            }
            Damage::Remove(at) if count > 1 => drop(lines.remove(at.index(count))),
            Damage::Remove(_) => {}
            Damage::Repeat(from, to) => {
                let line = lines[from.index(count)].clone();
                lines.insert(to.index(count), line);
            }
            Damage::Swap(one, other) => lines.swap(one.index(count), other.index(count)),
        }
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: seeded_random::scaled(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_recording_never_panics(
        which: prop::sample::Index,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let (_, recording) = GOLDEN[which.index(GOLDEN.len())];
        play(&damaged(recording, &damages));
    }
}
