//! The three forms a moment takes in run files (§4, §12); UTC always.

use std::fmt;

/// A moment in UTC, kept as `YYYY-MM-DDTHH:MM:SS.mmmZ`; every other form is a cut of that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timestamp(String);

impl Timestamp {
    /// Takes a text of exactly the form `YYYY-MM-DDTHH:MM:SS.mmmZ`, the form a host gives.
    ///
    /// # Errors
    /// `None` for any other form; the calendar itself is not checked.
    pub fn parse(text: &str) -> Option<Timestamp> {
        const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd.dddZ";
        let fits = text.len() == SHAPE.len()
            && text.bytes().zip(SHAPE).all(|(byte, &want)| match want {
                b'd' => byte.is_ascii_digit(),
                other => byte == other,
            });
        fits.then(|| Timestamp(text.to_owned()))
    }

    /// `YYYY-MM-DDTHH:MM:SS.mmmZ`: events, `init_run`, and `updated_at` when an event sets it.
    pub fn millis(&self) -> &str {
        &self.0
    }

    /// `YYYY-MM-DDTHH:MM:SSZ`: everything the feedback operations write.
    pub fn seconds(&self) -> String {
        format!("{}Z", &self.0[..19])
    }

    /// `YYYY-MM-DD HH:MM UTC`: the form people read in the issue comment.
    pub fn minute(&self) -> String {
        format!("{} {} UTC", &self.0[..10], &self.0[11..16])
    }

    /// `YYYYMMDD`, as it stands in a request id.
    pub fn date(&self) -> String {
        self.0[..10].replace('-', "")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A stored ISO time as a key that sorts by time: seconds and milliseconds forms mix in one folder, and as plain text
/// `10:00:00.500Z` would stand before `10:00:00Z`.
pub(crate) fn sort_key(iso: &str) -> &str {
    iso.strip_suffix('Z').unwrap_or(iso)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_cuts_of_one_text() {
        let at = Timestamp::parse("2025-12-06T18:04:09.120Z").unwrap();
        assert_eq!(at.millis(), "2025-12-06T18:04:09.120Z");
        assert_eq!(at.seconds(), "2025-12-06T18:04:09Z");
        assert_eq!(at.minute(), "2025-12-06 18:04 UTC");
        assert_eq!(at.date(), "20251206");
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2025-12-06T18:04:09Z",
            "2025-12-06 18:04:09.120Z",
            "2025-12-06T18:04:09.120+",
            "x025-12-06T18:04:09.120Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_sort_key_orders_mixed_forms() {
        let mut times =
            ["2025-12-04T10:00:00.500Z", "2025-12-04T10:00:01Z", "2025-12-04T10:00:00Z"];
        times.sort_by_key(|t| sort_key(t));
        assert_eq!(
            times,
            ["2025-12-04T10:00:00Z", "2025-12-04T10:00:00.500Z", "2025-12-04T10:00:01Z"]
        );
    }
}
