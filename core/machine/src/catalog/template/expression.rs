use alloc::vec::Vec;

use super::super::uri::{InvalidUri, after_scheme, check_literal, is_scheme_character};

/// The reason why a text is not a template of absolute URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTemplate {
    /// A `{` without its `}`, or a `}` without its `{`.
    #[error("`{{` and `}}` are not balanced")]
    Braces,
    /// A variable name in an expression is empty.
    #[error("an expression has an empty variable name")]
    EmptyName,
    /// A variable name contains an invalid character, or an operator that RFC 6570 reserves.
    #[error(
        "{0:?} is not allowed in a variable name: use only letters, digits, underscores, and dots \
         between them"
    )]
    Name(char),
    /// The prefix length after a colon is not from 1 to 9999.
    #[error("a prefix length must be a number from 1 to 9999")]
    Prefix,
    /// The text outside of expressions cannot be part of an absolute URI.
    #[error(transparent)]
    Literal(#[from] InvalidUri),
}

/// A part of a template, as it is matched in URIs.
#[derive(Debug)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    /// At least one character, none of them in `stops`. If it has a `lead`, it may be absent.
    Value {
        lead: Option<u8>,
        stops: &'static [u8],
        name: &'t str,
        length_max: Option<usize>,
    },
    /// Named parameters after a `lead`; may be absent.
    Pairs {
        lead: Option<u8>,
        stops: &'static [u8],
        separator: u8,
        names: Vec<&'t str>,
        open: bool,
    },
}

/// A variable of an expression.
struct Variable<'t> {
    name: &'t str,
    length_max: Option<usize>,
    list: bool,
}

/// Parses a template. Linear in its length.
pub(super) fn parse(template: &str) -> Result<Vec<Piece<'_>>, InvalidTemplate> {
    let mut pieces = Vec::new();
    let mut rest = template;
    check_scheme(template)?;
    while !rest.is_empty() {
        let (literal, tail) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if literal.contains('}') {
            return Err(InvalidTemplate::Braces);
        }
        check_literal(literal)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        rest = tail;
        if let Some(tail) = tail.strip_prefix('{') {
            let (expression, tail) = tail.split_once('}').ok_or(InvalidTemplate::Braces)?;
            push_expression(&mut pieces, expression)?;
            rest = tail;
        }
    }
    keep_out_of_the_query(&mut pieces);
    Ok(pieces)
}

/// Ends reserved values before the query or the fragment if the template has an expression for
/// these. Otherwise such a value would include them, because the later expression may be absent.
fn keep_out_of_the_query(pieces: &mut [Piece<'_>]) {
    let mut followed: Option<u8> = None;
    for piece in pieces.iter_mut().rev() {
        match piece {
            Piece::Pairs { lead: Some(b'?'), .. } => followed = Some(b'?'),
            Piece::Value { lead: Some(b'#'), .. } => followed = Some(b'#'),
            Piece::Value { lead: None | Some(b','), stops, .. } => {
                *stops = match (followed, &**stops) {
                    (Some(b'?'), b"") => b"?#",
                    (Some(b'?'), b",") => b",?#",
                    (Some(_), b"") => b"#",
                    (Some(_), b",") => b",#",
                    (_, others) => others,
                };
            }
            _ => {}
        }
    }
}

/// Checks that the URIs are absolute, as far as the text before the first expression shows it.
fn check_scheme(template: &str) -> Result<(), InvalidTemplate> {
    let (literal, open) = match template.split_once('{') {
        Some((literal, _)) => (literal, true),
        None => (template, false),
    };
    let partial = open && literal.chars().all(is_scheme_character);
    if partial || after_scheme(literal).is_some() { Ok(()) } else { Err(InvalidUri::Scheme.into()) }
}

fn push_expression<'t>(
    pieces: &mut Vec<Piece<'t>>,
    expression: &'t str,
) -> Result<(), InvalidTemplate> {
    let (operator, list) = match expression.as_bytes().first() {
        Some(byte @ (b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&')) => (*byte, &expression[1..]),
        _ => (b' ', expression),
    };
    let variables: Vec<_> = list.split(',').map(variable).collect::<Result<_, _>>()?;
    if matches!(operator, b';' | b'?' | b'&') {
        push_pairs(pieces, operator, &variables);
        return Ok(());
    }
    let several = variables.len() > 1;
    for (index, variable) in variables.into_iter().enumerate() {
        let separator = if matches!(operator, b'.' | b'/') { operator } else { b',' };
        let lead = match operator {
            _ if index > 0 => Some(separator),
            b' ' | b'+' => None,
            operator => Some(operator),
        };
        let stops: &'static [u8] = match operator {
            b'+' | b'#' if several => b",",
            b'+' | b'#' => b"",
            b'/' if variable.list => b"?#",
            b'.' if several => b"./?#",
            b' ' if several => b",/?#",
            _ => b"/?#",
        };
        let Variable { name, length_max, .. } = variable;
        pieces.push(Piece::Value { lead, stops, name, length_max });
    }
    Ok(())
}

fn push_pairs<'t>(pieces: &mut Vec<Piece<'t>>, operator: u8, variables: &[Variable<'t>]) {
    let listed = variables.iter().filter(|variable| !variable.list).map(|variable| variable.name);
    let more = variables.iter().any(|variable| variable.list);
    match pieces.last_mut() {
        // `{?a}{&b}` is one query.
        Some(Piece::Pairs { separator: b'&', names, open, .. }) if operator == b'&' => {
            names.extend(listed);
            *open |= more;
        }
        _ => pieces.push(Piece::Pairs {
            lead: Some(operator),
            stops: if operator == b';' { b"/?#" } else { b"#" },
            separator: if operator == b';' { b';' } else { b'&' },
            names: listed.collect(),
            open: more,
        }),
    }
}

fn variable(text: &str) -> Result<Variable<'_>, InvalidTemplate> {
    let (text, list) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
    let (name, prefix) = match text.split_once(':') {
        Some((name, prefix)) => (name, Some(prefix)),
        None => (text, None),
    };
    // A dot must be between other characters.
    if name.split('.').any(str::is_empty) {
        return Err(InvalidTemplate::EmptyName);
    }
    let foreign = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '%');
    if let Some(c) = name.chars().find(foreign) {
        return Err(InvalidTemplate::Name(c));
    }
    if name.contains('%') {
        check_literal(name)?;
    }
    let length_max = match prefix {
        None => None,
        Some(digits) => {
            let plain =
                digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            let length = digits.parse().ok().filter(|length| plain && *length < 10_000 && !list);
            Some(length.ok_or(InvalidTemplate::Prefix)?)
        }
    };
    Ok(Variable { name, length_max, list })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_templates_are_refused_with_a_reason() {
        // Rule: [RSRC-002] [RSRC-018].
        for (template, reason) in [
            ("a:{id", InvalidTemplate::Braces),
            ("a:id}", InvalidTemplate::Braces),
            ("a:{x{y}}", InvalidTemplate::Name('{')),
            ("a:{}", InvalidTemplate::EmptyName),
            ("a:{x,}", InvalidTemplate::EmptyName),
            ("a:{/}", InvalidTemplate::EmptyName),
            ("a:{x..y}", InvalidTemplate::EmptyName),
            ("a:{=x}", InvalidTemplate::Name('=')),
            ("a:{x-y}", InvalidTemplate::Name('-')),
            ("a:{x:0}", InvalidTemplate::Prefix),
            ("a:{x:10000}", InvalidTemplate::Prefix),
            ("a:{x:+1}", InvalidTemplate::Prefix),
            ("a:{x:}", InvalidTemplate::Prefix),
            ("a:{x%4}", InvalidTemplate::Literal(InvalidUri::Percent)),
            ("a: {x}", InvalidTemplate::Literal(InvalidUri::Character(' '))),
            ("", InvalidTemplate::Literal(InvalidUri::Scheme)),
            ("/{x}", InvalidTemplate::Literal(InvalidUri::Scheme)),
            ("readme", InvalidTemplate::Literal(InvalidUri::Scheme)),
        ] {
            assert_eq!(parse(template).map(|_| ()), Err(reason), "{template}");
        }
        for template in ["{scheme}://x", "a{b}:x", "{+uri}", "a:{x.y,z_1}{/p*}{?q:3}", "a:#{f}"] {
            assert!(parse(template).is_ok(), "{template}");
        }
    }
}
