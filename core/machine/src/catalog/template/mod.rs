//! URI templates (RFC 6570): matching a URI and extracting its values.

mod expression;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::uri::{decode_percent, encoded_byte};
use crate::InvalidValue;
use expression::{Piece, parse};

/// The maximum length of a URI that is matched with templates, in bytes: slightly more than the
/// 8,000 bytes that HTTP recommends to support (RFC 9110). A longer URI matches no template.
pub const TEMPLATE_URI_LENGTH_MAX: usize = 8192;

/// Checks that `template` is a well-formed template of absolute URIs. All four levels of RFC 6570
/// are supported: operators, prefixes (`{id:3}`) and lists (`{path*}`).
///
/// # Errors
///
/// The template is invalid: the fault of its author.
// MCP 2026-07-28 server/resources#resource-templates [RSRC-002]
pub fn check_template(template: &str) -> Result<(), InvalidValue> {
    parse(template).map(|_| ())
}

/// Returns whether the well-formed `template` has a variable called `name`.
#[must_use]
pub fn has_variable(template: &str, name: &str) -> bool {
    let mut expressions = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    expressions.any(|(expression, _)| {
        let variables = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        // Without the modifier: a length, or the `*` of a list.
        variables.split(',').any(|variable| variable.split([':', '*']).next() == Some(name))
    })
}

/// Returns the values with which `template` expands to `uri`, as pairs of variable and value in the
/// order of the template. Returns `None` if it does not match or is not well-formed.
///
/// * `{id}` is at least one character, up to the next `/`, `?` or `#`; `{+path}` also matches
///   these, but leaves the query to a later `{?q}` and the fragment to a later `{#part}`.
/// * `{/seg}`, `{.ext}`, `{#part}`, `{;p}`, `{?q}` and `{&q}` may be absent, and then have no pair.
///   Query parameters may be in any order; parameters that are not in the template do not match.
/// * `{id:3}` is at most three characters; what is percent-encoded counts as what it encodes.
/// * If several readings match, earlier variables are as long as possible.
/// * A list (`{path*}`) is one value with its separators; a list of parameters (`{?rest*}`) gives a
///   pair for each parameter, with its own name.
///
/// The percent-encoding of values is decoded, so they may contain any character, including `/` and
/// `..`: check them before you use them in a path or a query.
///
/// The work is bounded by the product of both lengths, and `uri` has at most
/// [`TEMPLATE_URI_LENGTH_MAX`] bytes.
// MCP 2026-07-28 server/resources#security-considerations [RSRC-017]
#[must_use]
pub fn match_template(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    // Most templates differ from the URI before their first variable, which is cheap to check.
    let plain = template.split('{').next().unwrap_or_default();
    if uri.len() > TEMPLATE_URI_LENGTH_MAX || !uri.starts_with(plain) {
        return None;
    }
    let pieces = parse(template).ok()?;
    let starts = character_starts(uri.as_bytes());
    let reached = reach(&pieces, uri.as_bytes(), &starts);
    collect(&pieces, &reached, &starts, uri)
}

/// Returns the positions in `uri` at which a character begins, percent-encoded or not, and its end.
// RFC 6570 section 2.4.1: a prefix counts characters, and does not split what encodes one.
fn character_starts(uri: &[u8]) -> Vec<bool> {
    let mut starts = vec![false; uri.len() + 1];
    starts[uri.len()] = true;
    let mut at = 0;
    while let Some(byte) = uri.get(at) {
        let encoded = (*byte == b'%').then(|| encoded_byte(&uri[at + 1..])).flatten();
        // Not within a character of several bytes.
        starts[at] = encoded.unwrap_or(*byte) & 0xC0 != 0x80;
        at += if encoded.is_some() { 3 } else { 1 };
    }
    starts
}

/// Computes for each piece the positions in `uri` from which it and all later pieces match to the
/// end. Works backwards, so that no reading is tried twice.
fn reach(pieces: &[Piece<'_>], uri: &[u8], starts: &[bool]) -> Vec<Vec<bool>> {
    let mut last = vec![false; uri.len() + 1];
    last[uri.len()] = true;
    let mut rows = vec![last];
    for piece in pieces.iter().rev() {
        let after = &rows[rows.len() - 1];
        let mut row = vec![false; uri.len() + 1];
        match piece {
            Piece::Literal(text) => {
                for (at, reached) in row.iter_mut().enumerate() {
                    *reached = after.get(at + text.len()) == Some(&true)
                        && uri[at..].starts_with(text.as_bytes());
                }
            }
            Piece::Value { lead, stops, .. } | Piece::Pairs { lead, stops, .. } => {
                let length_max = piece.length_max();
                // The characters of the shortest run from here that the rest can follow.
                let mut shortest: Option<usize> = None;
                for at in (0..=uri.len()).rev() {
                    let byte = uri.get(at);
                    let fits = |length: Option<usize>| length.is_some_and(|it| it <= length_max);
                    let led = lead.is_some_and(|lead| byte == Some(&lead)) && fits(shortest);
                    shortest = match byte {
                        Some(byte) if !stops.contains(byte) => {
                            let rest = if after[at + 1] { Some(0) } else { shortest };
                            rest.map(|rest| rest + usize::from(starts[at]))
                        }
                        _ => None,
                    };
                    row[at] = if lead.is_some() { led || after[at] } else { fits(shortest) };
                }
            }
        }
        // A piece does not begin within a character.
        row.iter_mut().zip(starts).for_each(|(reached, starts)| *reached &= *starts);
        rows.push(row);
    }
    rows.reverse();
    rows
}

/// Walks along the reachable positions and collects the values.
fn collect(
    pieces: &[Piece<'_>],
    reached: &[Vec<bool>],
    starts: &[bool],
    uri: &str,
) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut at = 0;
    if !reached[0][0] {
        return None;
    }
    for (piece, after) in pieces.iter().zip(&reached[1..]) {
        let (from, max) = (&uri.as_bytes()[at..], piece.length_max());
        match piece {
            Piece::Literal(text) => at += text.len(),
            Piece::Value { lead, stops, name, .. } => {
                let run = longest(*lead, stops, max, &after[at..], &starts[at..], from);
                let Some((start, end)) = run else { continue };
                found.push((String::from(*name), decode_percent(&uri[at + start..at + end])?));
                at += end;
            }
            Piece::Pairs { lead, stops, separator, names, open } => {
                let run = longest(*lead, stops, max, &after[at..], &starts[at..], from);
                let Some((start, end)) = run else { continue };
                let pairs = uri[at + start..at + end].split(char::from(*separator));
                take_pairs(pairs, names, *open, &mut found)?;
                at += end;
            }
        }
    }
    Some(found)
}

/// Returns the longest run of at most `length_max` characters of `uri`, after `lead`, that the rest
/// can follow.
fn longest(
    lead: Option<u8>,
    stops: &[u8],
    length_max: usize,
    after: &[bool],
    starts: &[bool],
    uri: &[u8],
) -> Option<(usize, usize)> {
    if lead.is_some() && uri.first() != lead.as_ref() {
        return None;
    }
    let start = usize::from(lead.is_some());
    let mut characters = 0;
    let fits = |(byte, starts): &(&u8, &bool)| {
        characters += usize::from(**starts);
        !stops.contains(byte) && characters <= length_max
    };
    let run = uri[start..].iter().zip(&starts[start..]).take_while(fits).count();
    let end = (start + 1..=start + run).rev().find(|end| after[*end])?;
    Some((start, end))
}

/// Takes `name=value` pairs, each name at most once. `open` allows other names too.
fn take_pairs<'u>(
    pairs: impl Iterator<Item = &'u str>,
    names: &[(&str, usize)],
    open: bool,
    found: &mut Vec<(String, String)>,
) -> Option<()> {
    let mut seen = vec![false; names.len()];
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode_percent(value)?;
        match names.iter().position(|(known, _)| *known == name) {
            Some(index) if !core::mem::replace(&mut seen[index], true) => {
                if value.chars().count() > names[index].1 {
                    return None;
                }
                found.push((name.into(), value));
            }
            None if open && !name.is_empty() => found.push((decode_percent(name)?, value)),
            _ => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(template: &str, uri: &str) -> Option<String> {
        check_template(template).unwrap_or_else(|error| panic!("{template}: {error}"));
        let pairs = match_template(template, uri)?;
        let texts: Vec<_> = pairs.iter().map(|(name, value)| [name, "=", value].concat()).collect();
        Some(texts.join(" "))
    }

    #[test]
    fn templates_match_their_expansions_and_return_the_values() {
        // Rule: [RSRC-002].
        for (template, uri, values) in [
            ("a:b", "a:b", ""),
            ("test://template/{id}/data", "test://template/123/data", "id=123"),
            ("db://{table}/{row}", "db://users/a%20b", "table=users row=a b"),
            ("file:///{+path}", "file:///src/main.rs", "path=src/main.rs"),
            ("file:///{+path}/info", "file:///a/info/b/info", "path=a/info/b"),
            ("f:{+path}{?q}", "f:a/b?q=1", "path=a/b q=1"),
            ("f:{+path}{?q}{#f}", "f:a/b#c", "path=a/b f=c"),
            ("f:{+path}{#f}", "f:a?b#c", "path=a?b f=c"),
            ("f:{+path}{;v}", "f:a;v=1", "path=a;v=1"),
            ("f:{name}.{ext}", "f:a.b.c", "name=a.b ext=c"),
            ("f:{x,y}", "f:1,2", "x=1 y=2"),
            ("f:x{/a,b}", "f:x/1/2", "a=1 b=2"),
            ("f:x{/a,b}", "f:x/1", "a=1"),
            ("f:x{/a}", "f:x", ""),
            ("f:{/path*}/end", "f:/a/b/c/end", "path=a/b/c"),
            ("f:x{.ext}", "f:x.tar.gz", "ext=tar.gz"),
            ("f:x{#part}", "f:x#a/b", "part=a/b"),
            ("f:x{;p,q}", "f:x;q=2;p", "q=2 p="),
            ("f:x{?q,limit}", "f:x?limit=5&q=a%26b", "limit=5 q=a&b"),
            ("f:x{?q,limit}", "f:x?q=", "q="),
            ("f:x{?q}", "f:x", ""),
            ("f:x{?q}{&r}", "f:x?q=1&r=2", "q=1 r=2"),
            ("f:x?fixed=1{&r}", "f:x?fixed=1&r=2", "r=2"),
            ("f:x{?rest*}", "f:x?b=1&a=2", "b=1 a=2"),
            ("f:{id:3}", "f:abc", "id=abc"),
            ("{+uri}", "any:thing/at#all", "uri=any:thing/at#all"),
            ("f:{id:2}{+rest}", "f:abc/d", "id=ab rest=c/d"),
            ("f:{id:2}{name}", "f:%C3%A9%20x", "id=é  name=x"),
            ("f:{id:1}{name}", "f:éü", "id=é name=ü"),
            ("f:{a}{b:2}", "f:xy%25", "a=xy b=%"),
            ("f:{a}4{+b}", "f:x4%41", "a=x b=A"),
            ("f:x{/a:1}{/b}", "f:x/1/2", "a=1 b=2"),
            ("f:x{/a:1}{/b}", "f:x/12", "b=12"),
            ("f:x{?q:2}", "f:x?q=%20y", "q= y"),
        ] {
            assert_eq!(matched(template, uri).as_deref(), Some(values), "{template} {uri}");
        }
    }

    #[test]
    fn other_uris_do_not_match() {
        // Rule: [RSRC-002] [RSRC-017]: a value never spans several path segments.
        for (template, uri) in [
            ("a:b", "a:bc"),
            ("file:///notes/{name}", "file:///notes/../secret"),
            ("a:{id}", "a:"),
            ("a:{id}", "a:x/y"),
            ("a:{id}", "a:x?y"),
            ("a:{id}", "b:x"),
            ("a:{id}/z", "a:x/y"),
            ("a:x{/seg}", "a:x/"),
            ("a:x{/seg}", "a:x/1/2"),
            ("a:x{?q}", "a:x?"),
            ("a:x{?q}", "a:x?r=1"),
            ("a:x{?q}", "a:x?q=1&q=2"),
            ("a:x{?rest*}", "a:x?=1"),
            ("a:{id:3}", "a:abcd"),
            ("a:{id:2}/{x}", "a:abc/d"),
            ("a:x{?q:2}", "a:x?q=abc"),
            ("a:{id}", "a:%FF"),
            ("a:{id}", "a:%4"),
        ] {
            assert_eq!(matched(template, uri), None, "{template} {uri}");
        }
        assert_eq!(match_template("a:{id", "a:{id"), None);
    }

    #[test]
    fn matching_a_hostile_uri_takes_bounded_work() {
        let template = ["a:", &"{+v}x".repeat(40), "y"].concat();
        let uri = ["a:", &"x".repeat(TEMPLATE_URI_LENGTH_MAX - 2)].concat();
        assert_eq!(match_template(&template, &uri), None);
        let longer = ["a:", &"x".repeat(TEMPLATE_URI_LENGTH_MAX - 1)].concat();
        assert!(match_template("a:{id}", &uri).is_some());
        assert_eq!(match_template("a:{id}", &longer), None);
    }

    /// Expands a template of expressions with one variable each.
    fn expand(template: &str, values: &[(String, String)]) -> String {
        let mut parts = template.split(['{', '}']);
        let mut uri = String::from(parts.next().unwrap());
        for expression in parts.filter(|part| !part.is_empty()) {
            let variable = expression.trim_start_matches(['+', '/', '.']);
            let (name, prefix) = variable.split_once(':').unwrap_or((variable, "9999"));
            let Some((_, value)) = values.iter().find(|(known, _)| known == name) else { continue };
            uri += expression.split('v').next().unwrap().trim_start_matches('+');
            for c in value.chars().take(prefix.parse().unwrap()) {
                let is_reserved = expression.starts_with('+') && c == '/';
                if c.is_ascii_alphanumeric() || c == '.' || is_reserved {
                    uri.push(c);
                    continue;
                }
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    uri += &alloc::format!("%{byte:02X}");
                }
            }
        }
        uri
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_the_matcher(
            template in "(a:)?([a:/?&;,.xé%]|[{][+#./;?&]?[xy,*:1]{0,4}[}]|[{}]){0,6}",
            uri in "(a:)?[a:/?&;=,.xy1é%#]{0,24}",
        ) {
            let found = match_template(&template, &uri);
            proptest::prop_assert!(found.is_none() || check_template(&template).is_ok());
            let _checked = super::super::uri::check_uri(&uri);
        }

        #[test]
        fn the_values_of_an_expanded_template_expand_to_the_same_uri(
            variables in proptest::collection::vec(
                (proptest::option::of(1..4_usize), 0..4_usize, "[a-c é]{1,5}"), 1..5,
            ),
        ) {
            let (mut template, mut values) = (String::from("a:"), Vec::new());
            for (index, (prefix, operator, value)) in variables.iter().enumerate() {
                let operator = ["", "+", "/", "."][*operator];
                let prefix = prefix.map_or_else(String::new, |prefix| alloc::format!(":{prefix}"));
                template += &alloc::format!("{{{operator}v{index}{prefix}}}");
                values.push((alloc::format!("v{index}"), value.clone()));
            }
            let uri = expand(&template, &values);
            let found = match_template(&template, &uri).expect("an expansion matches");
            proptest::prop_assert_eq!(expand(&template, &found), uri);
        }

        #[test]
        fn expanded_templates_match_with_the_same_values(
            id in "[a-z0-9._~-]{1,8}",
            path in "[a-z0-9/]{1,12}",
            limit in "[0-9]{1,4}",
        ) {
            let uri = ["db://", &id, "/rows/", &path, "?limit=", &limit].concat();
            let found = match_template("db://{id}/rows/{+path}{?after,limit}", &uri);
            let expected = [("id", id), ("path", path), ("limit", limit)];
            let expected: Vec<_> =
                expected.into_iter().map(|(name, value)| (String::from(name), value)).collect();
            proptest::prop_assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn text_beyond_ascii_is_supported() {
        for uri in ["a:é", "a:é/ü", "a:x?é=ü", "é"] {
            for template in ["a:{v}", "a:{+v}", "a:{v}{?q*}", "{+v}"] {
                let _values = match_template(template, uri);
            }
        }
        assert_eq!(matched("a:{v}", "a:é").as_deref(), Some("v=é"));
    }
}
