//! Escaping of untrusted text for HTML.

use std::fmt::Write;

/// Appends text so that browsers do not interpret any of it as markup. Invisible characters and
/// characters that change the text direction are written as escapes.
pub(super) fn write_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            _ if is_invisible(character) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
}

fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns the first line of a text, shortened to `length_max` characters.
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
    fn text_is_escaped() {
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
