//! References of a file to modules of its own crate: by `crate::`, `self::` and `super::`.

use crate::source::Source;

/// A path from the root of the crate, as written in the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Its line, from 1.
    pub(super) line: usize,
    /// The names in it, without `crate`.
    pub(super) path: Vec<String>,
}

/// Returns the references in `source` outside of tests; `module` is the path of its module.
pub(super) fn references(source: &Source, module: &[String]) -> Vec<Reference> {
    let tokens = tokens(source.code());
    let mut found = Vec::new();
    // The inline modules around the token, each with the depth of its braces.
    let mut inside: Vec<(usize, String)> = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.kind {
            Kind::Open => depth += 1,
            Kind::Close => {
                depth = depth.saturating_sub(1);
                inside.retain(|(within, _)| *within <= depth);
            }
            Kind::Word(word) if word == "mod" => {
                if let [Kind::Word(name), Kind::Open] = &kinds(&tokens, at + 1)[..] {
                    inside.push((depth + 1, name.clone()));
                }
            }
            Kind::Word(word) if matches!(word.as_str(), "crate" | "self" | "super") => {
                let starts = at == 0 || tokens[at - 1].kind != Kind::Separator;
                let goes_on = tokens.get(at + 1).is_some_and(|it| it.kind == Kind::Separator);
                if starts && goes_on && !source.is_test(token.at) {
                    let here = module.iter().chain(inside.iter().map(|(_, name)| name));
                    let here: Vec<String> = here.cloned().collect();
                    let mut paths = Vec::new();
                    tree(&tokens, at, &[], &mut paths);
                    found.extend(paths.into_iter().map(|names| Reference {
                        line: line(source.code(), token.at),
                        path: absolute(&here, &names),
                    }));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the names that `pub use` in the root file gives to items of modules, each with the
/// module it comes from.
pub(super) fn exports(source: &Source) -> Vec<(String, String)> {
    let tokens = tokens(source.code());
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].kind == Kind::Word(String::from("use")) {
            let mut paths = Vec::new();
            tree(&tokens, at + 1, &[], &mut paths);
            for names in paths {
                let names = absolute(&[], &names);
                if let [module, .., name] = &names[..] {
                    found.push((name.clone(), module.clone()));
                }
            }
        }
    }
    found
}

/// Adds the paths that start at `at` to `paths`, each after `prefix`, and returns their end.
fn tree(tokens: &[Token], mut at: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut names = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Word(name) => {
                names.push(name.clone());
                at += 1;
                if tokens.get(at).is_none_or(|it| it.kind != Kind::Separator) {
                    break;
                }
                at += 1;
            }
            Kind::Open => return group(tokens, at + 1, &names, paths),
            _ => break,
        }
    }
    paths.push(names);
    at
}

/// Adds the paths between two braces, of which the first is before `at`.
fn group(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    paths: &mut Vec<Vec<String>>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Close => return at + 1,
            Kind::Word(_) => {
                at = tree(tokens, at, prefix, paths);
                // `as name`.
                let rest = &tokens[at.min(tokens.len())..];
                at += rest.iter().take_while(|it| matches!(it.kind, Kind::Word(_))).count();
            }
            _ => at += 1,
        }
    }
    at
}

/// Resolves `names`, as written in the module `here`, to a path from the root of the crate.
fn absolute(here: &[String], names: &[String]) -> Vec<String> {
    let mut path = match names.first().map(String::as_str) {
        Some("self" | "super") => here.to_vec(),
        _ => Vec::new(),
    };
    for name in names {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => {
                path.pop();
            }
            _ => path.push(name.clone()),
        }
    }
    path
}

fn line(code: &[char], at: usize) -> usize {
    1 + code[..at].iter().filter(|c| **c == '\n').count()
}

struct Token {
    kind: Kind,
    at: usize,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Word(String),
    /// `::`
    Separator,
    Open,
    Close,
    Other,
}

fn tokens(code: &[char]) -> Vec<Token> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let (kind, length) = match &code[at..] {
            [':', ':', ..] => (Kind::Separator, 2),
            ['{', ..] => (Kind::Open, 1),
            ['}', ..] => (Kind::Close, 1),
            [first, rest @ ..] if is_word(first) => {
                let length = 1 + rest.iter().take_while(|c| is_word(c)).count();
                (Kind::Word(code[at..at + length].iter().collect()), length)
            }
            _ => (Kind::Other, 1),
        };
        if !code[at].is_whitespace() {
            found.push(Token { kind, at });
        }
        at += length;
    }
    found
}

/// Returns the kinds of the two tokens from `at` on.
fn kinds(tokens: &[Token], at: usize) -> Vec<Kind> {
    tokens.iter().skip(at).take(2).map(|it| it.kind.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(module: &str, text: &str) -> Vec<(usize, String)> {
        let module: Vec<String> = module.split_terminator('/').map(String::from).collect();
        let found = references(&Source::new(text), &module);
        found.into_iter().map(|it| (it.line, it.path.join("::"))).collect()
    }

    fn paths(module: &str, text: &str) -> Vec<String> {
        named(module, text).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn paths_are_found_in_imports_and_in_code() {
        assert_eq!(
            paths("a", "use crate::b::{C, d::{E as F, g}, h::*};\nuse serde::X;"),
            ["b::C", "b::d::E", "b::d::g", "b::h"]
        );
        assert_eq!(
            named("a", "fn f() {\n  crate::b::c::<D>(crate::E);\n}"),
            [(2, String::from("b::c")), (2, String::from("E"))]
        );
        assert_eq!(paths("a", "macro_rules! m { () => { $crate::b::c() } }"), ["b::c"]);
        assert_eq!(paths("a", "std::crate_name::x; \"crate::b\"; // crate::c"), [""; 0]);
    }

    #[test]
    fn relative_paths_start_at_the_module() {
        assert_eq!(
            paths("a/b", "use super::c; use super::super::d::E; use self::f::G;"),
            ["a::c", "d::E", "a::b::f::G"]
        );
        assert_eq!(paths("a", "mod b { use super::c::D; }\nuse super::e::F;"), ["a::c::D", "e::F"]);
    }

    #[test]
    fn references_in_tests_are_ignored() {
        assert_eq!(paths("a", "#[cfg(test)]\nmod tests {\n use crate::b::C;\n}"), [""; 0]);
    }

    #[test]
    fn exports_know_their_modules() {
        let found = exports(&Source::new("pub use a::b::{C, D};\npub use e::F;\npub mod e;"));
        let expected = [("C", "a"), ("D", "a"), ("F", "e")];
        assert_eq!(found, expected.map(|(name, module)| (name.into(), module.into())));
    }
}
