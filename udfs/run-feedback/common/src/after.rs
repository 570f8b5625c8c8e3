//! Whether a comment was written after a question (§16: a comment older than `requested_at` is ignored).
//!
//! The question has its time from this machine's clock, comments have theirs from the tracker's. Where the question was
//! posted, the tracker's own order of comments settles what a few minutes between the two clocks would confuse: a quick
//! answer is not lost because our clock is ahead.

use serde_json::{Map, Value};

use crate::github::IssueComment;
use sdk::Timestamp;

/// How far our clock may be ahead of the tracker's.
const AHEAD_MS: i64 = 10 * 60 * 1000;

/// Long before any question.
const EVER: &str = "1970-01-01T00:00:00Z";

/// Whether `comment` was written after `request` was asked.
pub(crate) fn is_after(comment: &IssueComment, request: &Map<String, Value>) -> bool {
    // A time that is none says nothing.
    let asked = asked_at(request).filter(|at| is_moment(at)).unwrap_or_default();
    if asked <= comment.created_at.as_str() {
        return true;
    }
    let follows = match (posted_as(request), comment.id.parse::<u64>()) {
        (Some(question), Ok(id)) => id > question,
        _ => false,
    };
    follows && earliest(asked).is_some_and(|earliest| earliest <= comment.created_at)
}

/// The moment since which comments may answer `request`.
pub(crate) fn since(request: &Map<String, Value>) -> String {
    let Some(asked) = asked_at(request).filter(|at| is_moment(at)) else { return EVER.to_owned() };
    match posted_as(request) {
        Some(_) => earliest(asked).unwrap_or_else(|| asked.to_owned()),
        None => asked.to_owned(),
    }
}

/// Whether the text is a time of §4: it stands in an address, where nothing else may.
pub(crate) fn is_moment(text: &str) -> bool {
    unix_ms(text).is_some()
}

fn asked_at(request: &Map<String, Value>) -> Option<&str> {
    request.get("requested_at")?.as_str()
}

/// The id of the comment that asks: `…#issuecomment-77`.
fn posted_as(request: &Map<String, Value>) -> Option<u64> {
    let url = request.get("notification_sent")?.get("comment_url")?.as_str()?;
    url.rsplit_once("#issuecomment-")?.1.parse().ok()
}

fn earliest(asked: &str) -> Option<String> {
    Some(Timestamp::from_unix_ms(unix_ms(asked)? - AHEAD_MS).to_seconds())
}

/// Milliseconds since 1970 of `2026-01-31T08:05:09Z`, with or without a fraction.
pub(crate) fn unix_ms(text: &str) -> Option<i64> {
    let (seconds, fraction) = match text.strip_suffix('Z')?.split_once('.') {
        Some((seconds, fraction)) => (seconds, fraction),
        None => (text.strip_suffix('Z')?, "0"),
    };
    let digits = |text: &str, length: usize| -> Option<i64> {
        (text.len() == length && text.bytes().all(|b| b.is_ascii_digit()))
            .then(|| text.parse().ok())?
    };
    let (date, time) = seconds.split_once('T')?;
    let (mut date, mut time) = (date.splitn(3, '-'), time.splitn(3, ':'));
    let (year, month, day) =
        (digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?);
    let (hour, minute, second) =
        (digits(time.next()?, 2)?, digits(time.next()?, 2)?, digits(time.next()?, 2)?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    let whole = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    if !fits || !whole || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms: i64 = digits(&thousandths, 3)?;
    // Days of a year that begins on 1 March, so that the leap day comes last.
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * from_march + 2) / 5
        + day
        - 1
        - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(asked: &str, url: Value) -> Map<String, Value> {
        let request = json!({"requested_at": asked, "notification_sent": {"comment_url": url}});
        request.as_object().cloned().unwrap()
    }

    fn comment(id: &str, created_at: &str) -> IssueComment {
        IssueComment {
            id: id.into(),
            author: "sam".into(),
            association: String::new(),
            body: String::new(),
            created_at: created_at.into(),
        }
    }

    #[test]
    fn moments_are_read_as_they_are_written() {
        for ms in [0, 951_782_400_000, 1_709_251_199_000, 1_769_846_709_000, 4_107_542_400_000] {
            let moment = Timestamp::from_unix_ms(ms + 7);
            assert_eq!(unix_ms(&moment.to_seconds()), Some(ms));
            assert_eq!(unix_ms(&moment.to_string()), Some(ms + 7));
        }
        for days in 0..20_000_i64 {
            let moment = Timestamp::from_unix_ms(days * 86_400_000);
            assert_eq!(unix_ms(&moment.to_string()), Some(moment.unix_ms()));
        }
        for text in [
            "",
            "Z",
            "now",
            "2026-01-31",
            "2026-01-31T08:05:09",
            "2026-01-31T08:05:09+01:00",
            "2026-13-31T08:05:09Z",
            "2026-01-31T24:05:09Z",
            "2026-01-31T08:05:09.Z",
            "2026-01-31T08:05:09Z&page=2",
            "2026-01-31T08:05:09Z\n",
            "+026-01-31T08:05:09Z",
        ] {
            assert_eq!(unix_ms(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_order_on_the_tracker_makes_up_for_clocks() {
        let asked = "2026-01-31T08:05:00Z";
        let posted = request(asked, json!("https://tracker.example/a/b/issues/7#issuecomment-77"));
        let unposted = request(asked, Value::Null);
        for (id, at, by_posted, by_unposted) in [
            ("78", "2026-01-31T08:05:00Z", true, true),
            ("76", "2026-01-31T08:05:00Z", true, true),
            ("78", "2026-01-31T08:04:59Z", true, false),
            ("78", "2026-01-31T07:55:00Z", true, false),
            ("78", "2026-01-31T07:54:59Z", false, false),
            ("77", "2026-01-31T08:04:59Z", false, false),
            ("76", "2026-01-31T08:04:59Z", false, false),
            ("x", "2026-01-31T08:04:59Z", false, false),
        ] {
            assert_eq!(is_after(&comment(id, at), &posted), by_posted, "{id} {at}");
            assert_eq!(is_after(&comment(id, at), &unposted), by_unposted, "{id} {at}");
        }
        assert_eq!(since(&posted), "2026-01-31T07:55:00Z");
        assert_eq!(since(&unposted), asked);
    }

    #[test]
    fn a_request_without_a_time_may_be_answered_by_anything() {
        for asked in ["", "yesterday", "2026-01-31T08:05:00Z&x=1"] {
            assert_eq!(since(&request(asked, Value::Null)), EVER);
            assert!(is_after(&comment("1", "2026-01-31T08:05:00Z"), &request(asked, Value::Null)));
        }
        assert!(is_after(&comment("1", "2026-01-31T08:05:00Z"), &Map::new()));
    }
}
