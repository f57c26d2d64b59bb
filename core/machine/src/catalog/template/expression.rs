use alloc::vec::Vec;

use super::super::uri::{InvalidUri, after_scheme, check_literal, is_scheme_character};
use crate::InvalidValue;

const BRACES: &str = "`{` and `}` are not balanced";
const EMPTY_NAME: &str = "an expression has an empty variable name";
const FOREIGN: &str = "not allowed in a variable name: use only letters, digits, underscores, and dots \
                       between them";
const PREFIX: &str = "a prefix length must be a number from 1 to 9999";

/// A part of a template, as it is matched in URIs.
#[derive(Debug)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    /// From one to `length_max` characters, none of them in `stops`. If it has a `lead`, it may be
    /// absent.
    Value {
        lead: Option<u8>,
        stops: &'static [u8],
        name: &'t str,
        length_max: usize,
    },
    /// Named parameters after a `lead`; may be absent.
    Pairs {
        lead: Option<u8>,
        stops: &'static [u8],
        separator: u8,
        /// The names, each with the most characters of its value.
        names: Vec<(&'t str, usize)>,
        open: bool,
    },
}

impl Piece<'_> {
    /// Returns the most characters of a value.
    pub(super) const fn length_max(&self) -> usize {
        match self {
            Self::Value { length_max, .. } => *length_max,
            _ => usize::MAX,
        }
    }
}

/// A variable of an expression.
struct Variable<'t> {
    name: &'t str,
    /// The most characters of its value.
    length_max: usize,
    list: bool,
}

/// Parses a template. Linear in its length.
pub(super) fn parse(template: &str) -> Result<Vec<Piece<'_>>, InvalidValue> {
    let mut pieces = Vec::new();
    let mut rest = template;
    check_scheme(template)?;
    while !rest.is_empty() {
        let (literal, tail) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if literal.contains('}') {
            return Err(InvalidValue::new(BRACES));
        }
        check_literal(literal).map_err(not_in_a_uri)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        rest = tail;
        if let Some(tail) = tail.strip_prefix('{') {
            let (expression, tail) =
                tail.split_once('}').ok_or_else(|| InvalidValue::new(BRACES))?;
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
fn check_scheme(template: &str) -> Result<(), InvalidValue> {
    let (literal, open) = match template.split_once('{') {
        Some((literal, _)) => (literal, true),
        None => (template, false),
    };
    let partial = open && literal.chars().all(is_scheme_character);
    let absolute = partial || after_scheme(literal).is_some();
    if absolute { Ok(()) } else { Err(not_in_a_uri(InvalidUri::Scheme)) }
}

/// Returns the error for text outside of expressions that cannot be part of an absolute URI.
fn not_in_a_uri(reason: InvalidUri) -> InvalidValue {
    // Formatting would cost a device two kilobytes.
    match reason {
        InvalidUri::Scheme => {
            InvalidValue::new("it does not start with a scheme, such as `file:` or `https:`")
        }
        InvalidUri::Character(character) => InvalidValue::at(character, "must be percent-encoded"),
        InvalidUri::Percent => InvalidValue::new("`%` is not followed by two hexadecimal digits"),
    }
}

fn push_expression<'t>(
    pieces: &mut Vec<Piece<'t>>,
    expression: &'t str,
) -> Result<(), InvalidValue> {
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
    let listed = variables.iter().filter(|it| !it.list).map(|it| (it.name, it.length_max));
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

fn variable(text: &str) -> Result<Variable<'_>, InvalidValue> {
    let (text, list) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
    let (name, prefix) = match text.split_once(':') {
        Some((name, prefix)) => (name, Some(prefix)),
        None => (text, None),
    };
    // A dot must be between other characters.
    if name.split('.').any(str::is_empty) {
        return Err(InvalidValue::new(EMPTY_NAME));
    }
    let foreign = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '%');
    if let Some(c) = name.chars().find(foreign) {
        return Err(InvalidValue::at(c, FOREIGN));
    }
    if name.contains('%') {
        check_literal(name).map_err(not_in_a_uri)?;
    }
    let length_max = match prefix {
        None => usize::MAX,
        Some(digits) => {
            let plain =
                digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            let length = digits.parse().ok().filter(|length| plain && *length < 10_000 && !list);
            length.ok_or_else(|| InvalidValue::new(PREFIX))?
        }
    };
    Ok(Variable { name, length_max, list })
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    #[test]
    fn malformed_templates_are_refused_with_a_reason() {
        // Rule: [RSRC-002] [RSRC-018].
        for (template, reason) in [
            ("a:{id", String::from(BRACES)),
            ("a:id}", BRACES.into()),
            ("a:{x{y}}", "`{`: not allowed in a variable name".into()),
            ("a:{}", EMPTY_NAME.into()),
            ("a:{x,}", EMPTY_NAME.into()),
            ("a:{/}", EMPTY_NAME.into()),
            ("a:{x..y}", EMPTY_NAME.into()),
            ("a:{=x}", "`=`: not allowed in a variable name".into()),
            ("a:{x-y}", "`-`: not allowed in a variable name".into()),
            ("a:{x:0}", PREFIX.into()),
            ("a:{x:10000}", PREFIX.into()),
            ("a:{x:+1}", PREFIX.into()),
            ("a:{x:}", PREFIX.into()),
            ("a:{x%4}", InvalidUri::Percent.to_string()),
            ("a: {x}", "` `: must be percent-encoded".into()),
            ("a:\u{202e}{x}", "`\\u202e`: must be percent-encoded".into()),
            ("", InvalidUri::Scheme.to_string()),
            ("/{x}", InvalidUri::Scheme.to_string()),
            ("readme", InvalidUri::Scheme.to_string()),
        ] {
            let error = parse(template).unwrap_err().to_string();
            assert!(error.starts_with(&reason), "{template}: {error}");
        }
        for template in ["{scheme}://x", "a{b}:x", "{+uri}", "a:{x.y,z_1}{/p*}{?q:3}", "a:#{f}"] {
            assert!(parse(template).is_ok(), "{template}");
        }
    }
}
