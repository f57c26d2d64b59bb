//! Text of anybody as text of a page, and as nothing else.

use std::fmt::Write;

/// Appends text such that no browser takes any of it for markup. What would not be seen, or would
/// turn the order of what is, is spelled out.
pub(super) fn write_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            _ if is_unseen(character) => {
                // Writing to a text does not fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
}

fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// As much of a text as has room, on one line.
pub(super) fn shortened(text: &str, length_max: usize) -> String {
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    match line.char_indices().nth(length_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let mut out = String::new();
        write_text(&mut out, "<b a='x' c=\"y\">&\u{202e}\u{0}\n");
        assert_eq!(out, "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\\u{202e}\\u{0}\n");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(shortened("ab\ncd", 2), "ab");
    }
}
