use core::fmt;

/// Text of a peer, displayed so that it cannot control the terminal that it is printed to.
///
/// A terminal obeys control characters: they move the cursor over other lines, write to the
/// clipboard, or change the title. Those for bidirectional text show it in another order. Each is
/// displayed as `\u` with four hexadecimal digits, which is its form in JSON, so that printed JSON
/// keeps its meaning. Newlines and tabs are kept; a carriage return before a newline is left out.
///
/// ```
/// use mcp_sansio::Printable;
///
/// assert_eq!(Printable::new("tea\r\n\x1b[2J").to_string(), "tea\n\\u001b[2J");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printable<'a>(&'a str);

impl<'a> Printable<'a> {
    /// Displays a text without control characters.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(controls) {
            let (text, controlling) = rest.split_at(at);
            f.write_str(text)?;
            let mut characters = controlling.chars();
            let Some(control) = characters.next() else { break };
            rest = characters.as_str();
            if control != '\r' || !rest.starts_with('\n') {
                write!(f, "\\u{:04x}", u32::from(control))?;
            }
        }
        f.write_str(rest)
    }
}

/// Returns whether a terminal may obey a character: C0 without newline and tab, DEL, C1, and the
/// controls of the Unicode bidirectional algorithm.
const fn controls(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2066}'..='\u{2069}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    #[test]
    fn no_control_character_is_displayed() {
        let all: String = (0..=0x2100).filter_map(char::from_u32).collect();
        let shown = Printable::new(&all).to_string();
        let left = shown.chars().filter(|&character| {
            character.is_control() || ('\u{2066}'..='\u{2069}').contains(&character)
        });
        assert_eq!(left.collect::<String>(), "\t\n");
        for bidirectional in ["061c", "200e", "200f", "202a", "202e", "2066", "2069"] {
            assert!(shown.contains(&alloc::format!("\\u{bidirectional}")), "{bidirectional}");
        }
        // The others are unchanged.
        assert!(shown.contains("~\\u007f") && shown.contains("\\u009f\u{a0}¡"), "{shown}");
    }

    #[test]
    fn lines_stay_lines_and_json_keeps_its_meaning() {
        assert_eq!(Printable::new("a\r\nb\rc\n\td").to_string(), "a\nb\\u000dc\n\td");
        let text = "\u{7f}\u{9b}31m\u{202e}";
        let shown = Printable::new(&serde_json::to_string(text).unwrap()).to_string();
        assert_eq!(shown, "\"\\u007f\\u009b31m\\u202e\"");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        assert_eq!(Printable::new("").to_string(), "");
    }
}
