//! A self-contained SVG picture: text is text, and fonts, scripts and styles are not loaded from
//! elsewhere.

use std::fmt::Write as _;

/// Colours for a light and a dark page.
const STYLE: &str = "\
text{font:13px sans-serif;fill:#1f2328}
.title{font-weight:bold}
.file{font:11px monospace;fill:#57606a}
.box{fill:#ffffff;stroke:#57606a}
.frame{fill:#f3f5f8;stroke:#c8d0d8}
.over{paint-order:stroke;stroke:#f3f5f8;stroke-width:5px}
.arrow{fill:none;stroke:#57606a;stroke-width:1.3}
.optional{stroke-dasharray:5 4}
.head{fill:#57606a}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.file{fill:#9aa4ae}
.box{fill:#161b22;stroke:#8b949e}
.frame{fill:#20262e;stroke:#3d444d}
.over{stroke:#20262e}
.arrow{stroke:#9aa4ae}
.head{fill:#9aa4ae}
}
";

/// The height of a text line.
pub(super) const LINE: f64 = 17.0;
/// The space around the text in a box.
pub(super) const PADDING: f64 = 9.0;
/// The maximum average width of a letter, so that text fits with any font.
const LETTER: f64 = 7.1;
const LETTER_OF_FILE: f64 = 6.7;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn middle(&self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// The text of a box, line by line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Label {
    lines: Vec<(&'static str, String)>,
}

impl Label {
    /// Creates the label for a box with this width: a title, files and functions, and an
    /// explanation.
    pub(super) fn new(title: &str, files: &[String], about: &str, width: f64) -> Self {
        let mut lines = Vec::new();
        let room = width - 2.0 * PADDING;
        lines.extend(wrapped(title, room / (LETTER * 1.08)).into_iter().map(|it| ("title", it)));
        for file in files {
            lines.extend(broken(file, room / LETTER_OF_FILE).into_iter().map(|it| ("file", it)));
        }
        lines.extend(wrapped(about, room / LETTER).into_iter().map(|it| ("", it)));
        Self { lines }
    }

    pub(super) fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE + 2.0 * PADDING - 4.0
    }
}

/// A drawing in progress.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto-start-reverse\">\
             <path class=\"head\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
            escaped(title)
        );
        Self { text }
    }

    /// Draws a box with its text.
    pub(super) fn labelled(&mut self, area: Area, label: &Label) {
        self.rectangle("box", area);
        for (number, (class, line)) in (0_u32..).zip(&label.lines) {
            let y = area.y + PADDING + 11.0 + f64::from(number) * LINE;
            self.line(class, area.x + PADDING, y, line);
        }
    }

    /// Draws a frame around other boxes.
    pub(super) fn frame(&mut self, area: Area) {
        self.rectangle("frame", area);
    }

    /// Draws the title of a frame, readable where arrows pass below it.
    pub(super) fn heading(&mut self, area: Area, title: &str, about: &str) {
        let (x, y) = (area.x + PADDING, area.y + PADDING + 11.0);
        self.line("title over", x, y, title);
        let behind = x + (title.chars().count() as f64 + 2.0) * LETTER * 1.08;
        self.line("over", behind, y, about);
    }

    /// Draws a line of text.
    pub(super) fn line(&mut self, class: &str, x: f64, y: f64, line: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ =
            writeln!(self.text, "<text{class} x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escaped(line));
    }

    /// Draws a smooth line through points from top to bottom; the arrow head is at the last point,
    /// or at the first one if `back`.
    pub(super) fn arrow(&mut self, class: &str, points: &[(f64, f64)], back: bool) {
        let mut path = String::new();
        let mut before = None;
        for &(x, y) in points {
            match before {
                None => {
                    let _ = write!(path, "M{x:.1} {y:.1}");
                }
                Some((old, _)) if old == x => {
                    let _ = write!(path, "V{y:.1}");
                }
                Some((old_x, old_y)) => {
                    let half = f64::midpoint(old_y, y);
                    let _ = write!(path, "C{old_x:.1} {half:.1} {x:.1} {half:.1} {x:.1} {y:.1}");
                }
            }
            before = Some((x, y));
        }
        let end = if back { "start" } else { "end" };
        let class = ["arrow", class].join(" ");
        let class = class.trim();
        let _ = writeln!(
            self.text,
            "<path class=\"{class}\" d=\"{path}\" marker-{end}=\"url(#head)\"/>"
        );
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn rectangle(&mut self, class: &str, area: Area) {
        let Area { x, y, width, height } = area;
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" rx=\"5\"/>"
        );
    }
}

/// Wraps `text` into lines of at most `length` letters, if its words allow it.
fn wrapped(text: &str, length: f64) -> Vec<String> {
    joined(text.split_whitespace(), " ", length)
}

/// Wraps a path into lines of at most `length` letters, after `/` and before `::`.
fn broken(path: &str, length: f64) -> Vec<String> {
    joined(path.replace('/', "/ ").replace("::", " ::").split(' '), "", length)
}

/// Joins parts into lines of at most `length` letters, with `between` between two parts of a line.
fn joined<'a>(parts: impl Iterator<Item = &'a str>, between: &str, length: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let longer = lines.last().map(|line| format!("{line}{between}{part}"));
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) if longer.chars().count() as f64 <= length => *line = longer,
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_where_it_may_be() {
        assert_eq!(wrapped("one two three", 7.0), ["one two", "three"]);
        assert_eq!(wrapped("extraordinary", 7.0), ["extraordinary"]);
        assert_eq!(
            broken("core/src/peer/server/mod.rs", 16.0),
            ["core/src/peer/", "server/mod.rs"]
        );
        assert_eq!(broken("Server::handle", 10.0), ["Server", "::handle"]);
    }

    #[test]
    fn a_label_is_as_high_as_its_lines() {
        let label = Label::new("a", &[String::from("a.rs")], "b c", 200.0);
        assert_eq!(label.lines.len(), 3);
        assert_eq!(label.height(), 3.0 * LINE + 2.0 * PADDING - 4.0);
    }
}
