//! Parts of documentation that are generated from data.

use std::fmt::Write as _;
use std::path::Path;

use crate::{Failure, files};

/// Returns `document` with `table` inserted between the marks `<!-- table name -->` and
/// `<!-- /table name -->`; `None` if the marks are missing.
pub(crate) fn replaced(document: &str, name: &str, table: &str) -> Option<String> {
    let (open, close) = (format!("<!-- table {name} -->\n"), format!("<!-- /table {name} -->"));
    let start = document.find(&open)? + open.len();
    let end = start + document[start..].find(&close)?;
    Some(format!("{}\n{table}\n{}", &document[..start], &document[end..]))
}

/// Inserts `table` between the marks in the file `path`.
pub(crate) fn replace(path: &str, name: &str, table: &str) -> Result<(), Failure> {
    let path = files::root().join(path);
    let document = std::fs::read_to_string(&path)?;
    let document = replaced(&document, name, table).ok_or_else(|| unmarked(&path, name))?;
    Ok(std::fs::write(path, document)?)
}

fn unmarked(path: &Path, name: &str) -> Failure {
    Failure::Unable(format!("{} has no marks `<!-- table {name} -->`", path.display()))
}

/// Formats a table in Markdown: the first `left` columns are aligned left, the others right.
pub(crate) fn table(head: &[String], rows: &[Vec<String>], left: usize) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head);
    text.push('|');
    for column in 0..head.len() {
        let _ = write!(text, " {} |", if column < left { "---" } else { "--:" });
    }
    text.push('\n');
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

/// Formats a whole number with thousands separators.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let text = "a\n<!-- table x -->\n\nold\n\n<!-- /table x -->\nb\n";
        let expected = "a\n<!-- table x -->\n\nnew\n\n<!-- /table x -->\nb\n";
        assert_eq!(replaced(text, "x", "new\n").as_deref(), Some(expected));
        assert_eq!(replaced(expected, "x", "new\n").as_deref(), Some(expected));
        assert_eq!(replaced(text, "y", "new\n"), None);
    }

    #[test]
    fn long_numbers_have_commas() {
        let written = [0, 12, 999, 1000, 123_456, 1_234_567].map(thousands);
        assert_eq!(written, ["0", "12", "999", "1,000", "123,456", "1,234,567"]);
    }
}
