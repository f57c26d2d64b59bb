use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::*;

fn scan(text: &str, depth: usize) -> Result<(), (ScanError, usize)> {
    let mut scanner = Scanner::new(text);
    let scanned = scanner.value(depth).and_then(|()| scanner.end());
    scanned.map_err(|error| (error, scanner.at()))
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

#[cfg(not(any(target_pointer_width = "16", target_pointer_width = "32")))]
#[test]
fn the_cached_prefix_is_skipped_only_at_its_position() {
    let scan_after = |text: &str, depth, known: &str| {
        let mut scanner = Scanner::new(text);
        let scanned = scanner.object(depth, known, |_, _, _| ()).and_then(|()| scanner.end());
        // The position of a depth error is not reported.
        let at = |error| if error == ScanError::TooDeep { 0 } else { scanner.at() };
        scanned.map_err(|error| (error, at(error)))
    };
    // This is not JSON, so that an error shows that the prefix was scanned.
    let known = r#"{"a":!{}"#;
    for after in ["}", " }", r#","b":[1]}"#] {
        for (before, end) in [("{\"m\": ", "}"), ("{\"l\":1,\"m\":", ",\"n\":{}}")] {
            let text = [before, known, after, end].concat();
            assert_eq!(scan_after(&text, 3, known), Ok(()), "{text}");
            assert_eq!(scan_after(&text, 1, known), Err((ScanError::TooDeep, 0)));
            assert_eq!(scan(&text, 3), Err((ScanError::Syntax, before.len() + 5)), "{text}");
            let deeper = [r#"{"k":"#, &text, "}"].concat();
            assert_eq!(
                scan_after(&deeper, 3, known),
                Err((ScanError::Syntax, before.len() + 10)),
                "{text}"
            );
        }
    }
    // The text after the prefix is scanned.
    let known = r#"{"a":{}"#;
    for after in ["", "x", "]", ",}", ":1}", "}", r#","b":[}"#, r#","b":[[]]}}"#, "}}", "}}}"] {
        let text = ["{\"m\":", known, after].concat();
        for depth in 3..6 {
            assert_eq!(scan_after(&text, depth, known), scan(&text, depth), "{text}");
        }
    }
}

#[test]
fn refuses_text_outside_the_grammar_and_reports_the_offset() {
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
        assert_eq!(scan(text, 9), Err((ScanError::Syntax, at)), "{text}");
    }
}

#[test]
fn follows_nesting_up_to_the_limit() {
    for depth in [0, 1, 64, DEPTH_MAX] {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(scan(&nested(depth), depth), Ok(()));
        let deeper = scan(&nested(depth + 1), depth);
        assert!(matches!(deeper, Err((ScanError::TooDeep, _))));
    }
    let deeper = scan(&"{\"a\":".repeat(1000), usize::MAX);
    assert!(matches!(deeper, Err((ScanError::TooDeep, _))));
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
fn strings_of_every_length_end_at_their_quote() {
    for length in 0..200 {
        for rest in ["", ",", ",\"b\"", ", \"some more text than a chunk has\""] {
            for (escape, width) in [("", 0), (r#"\""#, 2), (r"\u00e9", 6)] {
                for before in [0, length / 2, length] {
                    let (start, end) = ("x".repeat(before), "x".repeat(length - before));
                    let text = format!("\"{start}{escape}{end}\"{rest}");
                    let mut scanner = Scanner::new(&text);
                    let written = scanner.string().expect("a string");
                    assert_eq!(written.text, [&*start, escape, &end].concat());
                    assert_eq!(written.escaped, width > 0, "{text}");
                    assert_eq!(scanner.at(), length + width + 2, "{text}");
                }
            }
        }
        let open = format!("\"{}", "x".repeat(length));
        assert_eq!(scan(&open, 9), Err((ScanError::Syntax, open.len())));
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
