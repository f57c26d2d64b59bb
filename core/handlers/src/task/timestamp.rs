use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

/// Formats a time since 1970 as ISO 8601, in UTC, to the millisecond; later times are clamped to
/// the year 9999.
// MCP 2025-11-25 schema.json#Task [TASK-010]
pub(super) fn iso_8601(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs().min(LAST);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns year, month and day of a day since 1970.
///
/// Years are counted from March, so that the leap day is the last day, in eras of 400 years of
/// equal length.
const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0.
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, the lengths 31, 30, 31, 30, 31 of months repeat.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_formatted() {
        // Rule: [TASK-010].
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_785_196_800_000, "2026-07-28T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_millis(millis)), text);
        }
        assert!(iso_8601(Duration::MAX).starts_with("9999-12-31T23:59:59."));
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut last = date(0);
        assert_eq!(last, (1970, 1, 1));
        for day in 1..=146_097 {
            let next = date(day);
            let year = last.0;
            let century = year.is_multiple_of(100) && !year.is_multiple_of(400);
            let leap = year.is_multiple_of(4) && !century;
            let length = match last.1 {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = match last {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, of_month) if of_month == length => (year, month + 1, 1),
                (year, month, of_month) => (year, month, of_month + 1),
            };
            assert_eq!(next, expected);
            last = next;
        }
        assert_eq!(last, (2370, 1, 1));
    }
}
