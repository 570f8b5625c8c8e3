//! One point in time, given to the engine by its caller: the engine never reads a clock.

use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Seconds with three decimals, the form of `ts` in the journal and of `at` in the state.
    pub fn seconds(self) -> String {
        format!("{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// UTC to the second, as the ledger stamps its attempts: `2026-01-01T00:00:00Z`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        let (year, month, day) = civil(seconds / 86_400);
        let clock = seconds % 86_400;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            clock / 3600,
            clock / 60 % 60,
            clock % 60
        )
    }
}

/// Year, month and day of a day number counted from 1970-01-01.
///
/// Years are taken to begin in March, so that the leap day is the last of its year and month lengths
/// follow one formula.
fn civil(day_number: u64) -> (u64, u64, u64) {
    let day = day_number + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_utc() {
        for (millis, text, seconds) in [
            (0, "1970-01-01T00:00:00Z", "0.000"),
            (951_782_399_999, "2000-02-28T23:59:59Z", "951782399.999"),
            (951_782_400_000, "2000-02-29T00:00:00Z", "951782400.000"),
            (1_767_225_600_007, "2026-01-01T00:00:00Z", "1767225600.007"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z", "4107542400.000"),
        ] {
            assert_eq!(Moment(millis).to_string(), text);
            assert_eq!(Moment(millis).seconds(), seconds);
        }
    }
}
