//! How long something has been waiting.

use jiff::Timestamp;

/// Whole seconds from `created` (a timestamp of the app-store contract §6) to `now`; `None` for what is no timestamp.
///
/// Clocks are set back, and files come from other machines: what seems to come from the future has just begun.
pub(super) fn seconds(created: &str, now: Timestamp) -> Option<u64> {
    let created: Timestamp = created.parse().ok()?;
    let seconds = now.as_second().saturating_sub(created.as_second());
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// The same, in the largest unit that makes sense.
pub(super) fn shown(created: &str, now: Timestamp) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match seconds(created, now) {
        None => "?".to_owned(),
        Some(seconds @ ..MINUTE) => format!("{seconds} s"),
        Some(seconds @ ..HOUR) => format!("{} min", seconds / MINUTE),
        Some(seconds) if seconds < 2 * DAY => format!("{} h", seconds / HOUR),
        Some(seconds) => format!("{} d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rounded_down_and_never_negative() {
        let now: Timestamp = "2026-03-03T12:00:00.500Z".parse().unwrap();
        for (created, want) in [
            ("2026-03-03T12:00:00.000Z", "0 s"),
            ("2026-03-03T11:59:01.999Z", "59 s"),
            ("2026-03-03T11:59:00Z", "1 min"),
            ("2026-03-03T11:00:01Z", "59 min"),
            ("2026-03-03T11:00:00Z", "1 h"),
            ("2026-03-01T12:00:01Z", "47 h"),
            ("2026-03-01T12:00:00Z", "2 d"),
            ("2020-03-01T12:00:00+02:00", "2193 d"),
            // The clock was set back by an hour, or the file comes from elsewhere.
            ("2026-03-03T13:00:00.000Z", "0 s"),
            ("9999-12-30T00:00:00Z", "0 s"),
            ("", "?"),
            ("yesterday", "?"),
            ("2026-03-03", "?"),
        ] {
            assert_eq!(shown(created, now), want, "{created}");
        }
    }
}
