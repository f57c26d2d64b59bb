//! Mentions of HTTP in code that must not depend on a transport.

use crate::source::Source;

/// Words that only a binding to HTTP uses, as parts of names.
const WORDS: [&str; 9] =
    ["exchange", "exchanges", "headers", "http", "https", "post", "posting", "posts", "sse"];

/// Returns the names and texts outside of tests that mention HTTP, with their lines.
///
/// `cfg(feature = "http")` is allowed: it excludes unused code from images.
pub(super) fn find(source: &Source, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, name) in names(source) {
        if parts(&name).any(|part| WORDS.contains(&part.as_str())) {
            found.push((line, name));
        }
    }
    for (line, text) in texts(source, text) {
        if text.contains("HTTP") {
            found.push((line, text));
        }
    }
    found.sort();
    found
}

/// Returns the names and keywords in the code.
fn names(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut name = String::new();
    let mut line = 1;
    for (at, c) in source.code().iter().enumerate() {
        if c.is_alphanumeric() || *c == '_' {
            if !source.is_test(at) {
                name.push(*c);
            }
        } else if !name.is_empty() {
            found.push((line, std::mem::take(&mut name)));
        }
        line += usize::from(*c == '\n');
    }
    if !name.is_empty() {
        found.push((line, name));
    }
    found
}

/// Returns the contents of strings, by line.
fn texts(source: &Source, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut line = (1, String::new());
    let mut comments = source.comments.iter().peekable();
    let mut in_comment = false;
    for (at, (c, code)) in text.chars().zip(source.code()).enumerate() {
        in_comment |= comments.next_if(|it| it.at <= at).is_some();
        if c == '\n' {
            in_comment = false;
            let next = (line.0 + 1, String::new());
            found.push(std::mem::replace(&mut line, next));
        } else if c != *code && !in_comment && !source.is_test(at) {
            line.1.push(c);
        } else if c == ' ' && !line.1.ends_with(' ') {
            line.1.push(' ');
        }
    }
    found.push(line);
    found.retain_mut(|(_, text)| {
        *text = text.trim().to_owned();
        !text.is_empty()
    });
    found
}

/// Splits a name into its parts: `next_post` and `NextPost` have two.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let starts = c.is_uppercase() && !before.is_uppercase();
        if c == '_' || starts {
            parts.push(String::new());
        }
        if let (Some(part), true) = (parts.last_mut(), c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        find(&Source::new(text), text)
    }

    #[test]
    fn names_and_texts_speak_of_http() {
        let text = "fn next_post() {}\nuse a::HttpServer;\n#[error(\"HTTP status {status}\")]\n";
        let words = [(1, "next_post"), (2, "HttpServer"), (3, "\"HTTP status {status}\"")];
        assert_eq!(found(text), words.map(|(line, word)| (line, String::from(word))));
    }

    #[test]
    fn comments_tests_features_and_longer_words_do_not() {
        for text in [
            "// HTTP, Post",
            "fn a() {} /// HTTP\n",
            "#[cfg(feature = \"http\")]\nmod a;",
            "#[cfg(test)]\nmod tests { fn f() { http(\"HTTP\") } }",
            "postpone(Assessment, POSTED)",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn names_have_parts() {
        let parts: Vec<String> = parts("HTTPServer_is_ofPosts").collect();
        assert_eq!(parts, ["httpserver", "is", "of", "posts"]);
    }
}
