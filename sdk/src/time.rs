use std::fmt;

/// A moment in UTC, in milliseconds. Displayed as `2026-01-31T08:05:09.007Z` (the app-store contract
/// §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    unix_ms: i64,
}

impl Timestamp {
    /// Milliseconds since 1970.
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Self { unix_ms }
    }

    /// Milliseconds since 1970.
    pub const fn unix_ms(self) -> i64 {
        self.unix_ms
    }

    /// `2026-01-31T08:05:09Z`.
    pub fn to_seconds(self) -> String {
        let Parts { year, month, day, hour, minute, second, .. } = self.parts();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// `2026-01-31 08:05 UTC`.
    pub fn to_minutes(self) -> String {
        let Parts { year, month, day, hour, minute, .. } = self.parts();
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
    }

    /// `20260131`.
    pub fn to_date(self) -> String {
        let Parts { year, month, day, .. } = self.parts();
        format!("{year:04}{month:02}{day:02}")
    }

    fn parts(self) -> Parts {
        let days = self.unix_ms.div_euclid(86_400_000);
        let ms = self.unix_ms.rem_euclid(86_400_000);
        // Days to a date of the proleptic Gregorian calendar, in years that begin on 1 March so that
        // the leap day comes last.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Parts {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: ms / 3_600_000,
            minute: ms / 60_000 % 60,
            second: ms / 1_000 % 60,
            millisecond: ms % 1_000,
        }
    }
}

struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { year, month, day, hour, minute, second, millisecond } = self.parts();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (unix_ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_unix_ms(unix_ms).to_string(), want);
        }
    }

    #[test]
    fn other_forms() {
        let moment = Timestamp::from_unix_ms(1_769_846_709_007);
        assert_eq!(moment.to_string(), "2026-01-31T08:05:09.007Z");
        assert_eq!(moment.to_seconds(), "2026-01-31T08:05:09Z");
        assert_eq!(moment.to_minutes(), "2026-01-31 08:05 UTC");
        assert_eq!(moment.to_date(), "20260131");
    }

    /// Every day of 400 years follows the one before it by the rules of the calendar.
    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097_i64 {
            let parts = Timestamp::from_unix_ms(days * 86_400_000).parts();
            assert_eq!((parts.year, parts.month, parts.day), (year, month, day), "{days}");
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
