//! Spellings of a JSON text that this project reads in the same way, for parsers that do not.

use std::collections::BTreeMap;

/// How many places of a text may have two spellings for all combinations to be listed.
const PLACES_MAX: usize = 4;

/// The numbers that are written as integers in the usual spellings of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeNumbers {
    /// All: every type reads them as integers.
    All,
    /// None: all types keep the text, or read it as a float.
    None,
    /// Those whose types want integers.
    Some,
}

/// A text in the usual spelling.
///
/// A type that wants an integer reads a negative zero as zero, and one that wants an object reads
/// an empty array as an empty object. Which places of a text have such a type is not known here, so
/// all combinations are listed.
pub(super) struct Spellings {
    /// The texts; the first has every negative zero and every empty array of the original.
    pub(super) texts: Vec<String>,
    /// Whether all combinations are listed.
    pub(super) complete: bool,
}

impl Spellings {
    pub(super) fn new(text: &str, numbers: WholeNumbers) -> Self {
        let mut tokens: Vec<String> = tokens(text).map(String::from).collect();
        // The tokens of the other spelling, by their index.
        let mut places: Vec<BTreeMap<usize, String>> = Vec::new();
        for at in 0..tokens.len() {
            if let Some(usual) = usual_spelling(&tokens[at]) {
                match numbers {
                    WholeNumbers::All => tokens[at] = usual,
                    WholeNumbers::None => {}
                    WholeNumbers::Some => places.push([(at, usual)].into()),
                }
            } else if is_negative_zero(&tokens[at]) {
                places.push([(at, "0".into())].into());
            } else if tokens[at] == "[" {
                let is_space = |token: &str| token.trim_ascii().is_empty();
                let next = (at + 1..tokens.len()).find(|next| !is_space(&tokens[*next]));
                if let Some(end) = next.filter(|next| tokens[*next] == "]") {
                    places.push([(at, "{".into()), (end, "}".into())].into());
                }
            }
        }
        let complete = places.len() <= PLACES_MAX;
        let chosen: Vec<u32> =
            if complete { (0..1 << places.len()).collect() } else { vec![0, u32::MAX] };
        let texts = chosen.into_iter().map(|chosen| {
            let is_chosen = |place: usize| chosen == u32::MAX || chosen & 1 << place != 0;
            let changed = places.iter().enumerate().filter(|(place, _)| is_chosen(*place));
            let changed: BTreeMap<_, _> = changed.flat_map(|(_, changed)| changed).collect();
            let written = tokens.iter().enumerate();
            written.map(|(at, token)| changed.get(&at).map_or(&**token, |it| it)).collect()
        });
        Self { texts: texts.collect(), complete }
    }
}

/// Splits a valid JSON text into strings, numbers, and single characters.
pub(super) fn tokens(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = match rest.chars().next()? {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|it| {
                    let closes = it == '"' && !escaped;
                    escaped = it == '\\' && !escaped;
                    closes
                });
                end.expect("valid JSON") + 2
            }
            '-' | '0'..='9' => {
                let goes_on = |it: char| it.is_ascii_digit() || "+-.eE".contains(it);
                rest.find(|it| !goes_on(it)).unwrap_or(rest.len())
            }
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

fn is_negative_zero(token: &str) -> bool {
    let Some(digits) = token.strip_prefix('-') else { return false };
    digits.split(['e', 'E']).next().unwrap_or_default().chars().all(|it| "0.".contains(it))
}

/// Moves the decimal point of a whole number of 64 bits with a fraction or an exponent. Returns
/// `None` for any other token, and for a negative zero.
pub(super) fn usual_spelling(token: &str) -> Option<String> {
    let (mantissa, exponent) = match token.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (token, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if !token.contains(['.', 'e', 'E']) || !digits.contains(|it: char| it.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".into());
    }
    if significant == "-" {
        return None;
    }
    let zeros = (digits.len() - significant.len()) as i64;
    let places = i64::from(exponent.parse::<i32>().ok()?) - fraction.len() as i64 + zeros;
    let places = usize::try_from(places).ok().filter(|places| *places < 20)?;
    let number: i128 = format!("{significant}{}", "0".repeat(places)).parse().ok()?;
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then(|| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_with_two_spellings_is_written_in_both() {
        let text = r#"{"[]":[ ],"a":[3.0,-0.0e1]}"#;
        let texts = |numbers| Spellings::new(text, numbers).texts;
        assert_eq!(
            texts(WholeNumbers::All),
            [
                r#"{"[]":[ ],"a":[3,-0.0e1]}"#,
                r#"{"[]":{ },"a":[3,-0.0e1]}"#,
                r#"{"[]":[ ],"a":[3,0]}"#,
                r#"{"[]":{ },"a":[3,0]}"#,
            ]
        );
        assert_eq!(texts(WholeNumbers::None)[0], text);
        assert_eq!(texts(WholeNumbers::Some).len(), 8);
        assert_eq!(Spellings::new("[[],[],[],[],[]]", WholeNumbers::All).texts.len(), 2);
        assert_eq!(Spellings::new(r#""-0[]\\\"3.0""#, WholeNumbers::All).texts.len(), 1);
        assert_eq!(usual_spelling("1e19").as_deref(), Some("10000000000000000000"));
        assert_eq!(usual_spelling("3.5"), None);
    }
}
