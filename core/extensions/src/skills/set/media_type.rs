//! The media types of files, by their names.

/// The media type of a directory.
// MCP 2026-07-28 skills:skills#directory-resources [SKILL-085]
pub(crate) const DIRECTORY: &str = "inode/directory";

/// The types of the files that skills usually contain, sorted by the ending.
const TYPES: &[(&str, &str)] = &[
    ("bash", "application/x-sh"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("py", "text/x-python"),
    ("sh", "application/x-sh"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the media type of the file called `name`.
// MCP 2026-07-28 skills:skills#resource-metadata [SKILL-020]
pub(super) fn of(name: &str, is_text: bool) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match TYPES.binary_search_by(|(known, _)| (*known).cmp(&ending)) {
        Ok(at) => TYPES[at].1,
        Err(_) if is_text => "text/plain",
        Err(_) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        // Rule: [SKILL-020].
        assert!(TYPES.is_sorted());
        assert_eq!(of("SKILL.md", true), "text/markdown");
        assert_eq!(of("A.PNG", false), "image/png");
        assert_eq!(of("Makefile", true), "text/plain");
        assert_eq!(of("x.bin", false), "application/octet-stream");
    }
}
