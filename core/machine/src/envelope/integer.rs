//! Integers as JSON spells them.

/// An integer of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    Positive(u64),
    Negative(i64),
}

impl Integer {
    /// Reads an integer that is written without fraction and exponent. Returns `None` for any other
    /// text, and for `-0`, which is negative only as a float.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() {
            return None;
        }
        let mut number = 0_u64;
        for byte in digits.bytes() {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            number = number.checked_mul(10)?.checked_add(digit)?;
        }
        if digits.len() == text.len() {
            return Some(Self::Positive(number));
        }
        0_i64.checked_sub_unsigned(number).filter(|number| *number != 0).map(Self::Negative)
    }

    /// Reads a JSON number whose fraction is zero, in any spelling, as JSON Schema defines an
    /// integer: `3.0` and `3e0` are 3. The value is exact; nothing is rounded.
    ///
    /// Callers try [`read`](Self::read) first, because nearly all integers have its form.
    #[cold]
    pub(crate) fn read_any_spelling(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (text, 0),
        };
        let digits = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() {
            return None;
        }
        // The number of digits before the decimal point, once the exponent has moved it.
        let point = (whole.len() as i64).saturating_add(exponent);
        let (mut number, mut place) = (0_u64, 0);
        for byte in whole.bytes().chain(fraction.bytes()) {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            if place < point {
                number = number.checked_mul(10)?.checked_add(digit)?;
            } else if digit != 0 {
                return None;
            }
            place += 1;
        }
        // Ends after 20 steps at the latest, because the number overflows.
        while number != 0 && place < point {
            number = number.checked_mul(10)?;
            place += 1;
        }
        if mantissa.starts_with('-') && number != 0 {
            0_i64.checked_sub_unsigned(number).map(Self::Negative)
        } else {
            Some(Self::Positive(number))
        }
    }
}

/// Reads an exponent. Its value saturates: far smaller ones are out of range already.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0_i64;
    for byte in digits.bytes() {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        exponent = exponent.saturating_mul(10).saturating_add(digit);
    }
    Some(if text.starts_with('-') { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_zero_makes_an_integer_in_every_spelling() {
        for (text, number) in [
            ("3.0", 3),
            ("3.000", 3),
            ("3e0", 3),
            ("3E+0", 3),
            ("30e-1", 3),
            ("0.3e1", 3),
            ("0.0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
            ("0.00e-7", 0),
            ("1e3", 1000),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("18446744073709551615.0", u64::MAX),
            ("1.8446744073709551615e19", u64::MAX),
        ] {
            assert_eq!(Integer::read_any_spelling(text), Some(Integer::Positive(number)), "{text}");
        }
        for (text, number) in [("-3.0", -3), ("-3e2", -300), ("-9223372036854775808.0", i64::MIN)] {
            assert_eq!(Integer::read_any_spelling(text), Some(Integer::Negative(number)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_integers() {
        for text in [
            "3.5",
            "0.5",
            "1e-1",
            "35e-1",
            "3.00000000000000000000001",
            "1e300",
            "1e20",
            "18446744073709551616.0",
            "-9223372036854775809.0",
            "1e-999999999999999999999",
            "1e99999999999999999999",
            "",
            "-",
            "true",
            "\"3\"",
            "{}",
            "e1",
            "1e",
            "1e+",
            ".0",
        ] {
            assert_eq!(Integer::read_any_spelling(text), None, "{text}");
        }
    }
}
