//! JSON numbers by value: `42.0` and `4.2e1` are 42.

/// The greatest integer up to which binary64 represents every integer exactly: 2^53 - 1.
pub(super) const INTEGER_MAX: i64 = (1 << 53) - 1;

/// The value of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// An integer whose magnitude is at most [`INTEGER_MAX`].
    Integer(i64),
    /// A larger integer.
    OutOfRange,
    /// Not an integer.
    Fraction,
}

/// Reads a number in JSON syntax; `None` for other texts. Exact, and linear in the length
/// regardless of the exponent.
pub(super) fn read(text: &str) -> Option<Number> {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
        None => (magnitude, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    // The number of digits before the decimal point, after the exponent is applied.
    let places = i64::try_from(whole.len()).ok()?.saturating_add(exponent);
    let mut count = 0;
    let mut value = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if count < places {
            value = append(value, i64::from(digit - b'0'));
        } else if digit != b'0' {
            return Some(Number::Fraction);
        }
        count += 1;
    }
    // Zero stays zero; any other value is out of range after a few more digits.
    while count < places && (1..=INTEGER_MAX).contains(&value) {
        value = append(value, 0);
        count += 1;
    }
    Some(match value {
        0..=INTEGER_MAX if text.starts_with('-') => Number::Integer(-value),
        0..=INTEGER_MAX => Number::Integer(value),
        _ => Number::OutOfRange,
    })
}

/// Appends a digit, and saturates above the greatest integer.
fn append(value: i64, digit: i64) -> i64 {
    (value * 10 + digit).min(INTEGER_MAX + 1)
}

fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = digits.bytes().fold(0_i64, |size, digit| {
        size.saturating_mul(10).saturating_add(i64::from(digit.wrapping_sub(b'0')))
    });
    is_digits(digits).then_some(if text.starts_with('-') { -size } else { size })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn integers_are_recognized_in_every_notation() {
        // Rule: [HDR-014] [HDR-030].
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000e99999999999999999999", 0),
            ("42", 42),
            ("-7", -7),
            ("42.0", 42),
            ("4.2e1", 42),
            ("4200E-2", 42),
            ("0.042e+3", 42),
            ("9007199254740991", INTEGER_MAX),
            ("-9007199254740991.000", -INTEGER_MAX),
            ("9.007199254740991e15", INTEGER_MAX),
        ] {
            assert_eq!(read(text), Some(Number::Integer(value)), "{text}");
        }
    }

    #[test]
    fn out_of_range_integers_are_distinguished_from_fractions() {
        // Rule: [HDR-014].
        for text in
            ["9007199254740992", "-9007199254740992", "1e400", "1e99999999999999999999", "9e15000"]
        {
            assert_eq!(read(text), Some(Number::OutOfRange), "{text}");
        }
        for text in ["0.5", "42.01", "9007199254740990.5", "1e-1", "1e-99999999999999999999"] {
            assert_eq!(read(text), Some(Number::Fraction), "{text}");
        }
        let long = "1".repeat(100_000);
        assert_eq!(read(&long), Some(Number::OutOfRange));
        assert_eq!(read(&format!("0.{long}")), Some(Number::Fraction));
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1e1.5", "0x10", "1_000", " 1", "1 ",
            "٣", "NaN", "--1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_integer_in_range_is_read(value in -INTEGER_MAX..=INTEGER_MAX, zeros in 0_usize..4) {
            let zeros = "0".repeat(zeros);
            for text in [format!("{value}"), format!("{value}.0{zeros}"), format!("{value}{zeros}e-{}", zeros.len())] {
                proptest::prop_assert_eq!(read(&text), Some(Number::Integer(value)));
            }
        }

        #[test]
        fn no_text_panics_the_parser(text in "[-+0-9.eE]{0,12}|\\PC{0,8}") {
            let json = serde_json::from_str::<serde_json::Number>(&text).is_ok();
            // The parser of `serde_json` refuses numbers outside of binary64.
            proptest::prop_assert!(!json || text.trim() != text || read(&text).is_some());
        }
    }
}
