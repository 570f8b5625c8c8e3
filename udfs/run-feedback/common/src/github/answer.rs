//! What an answer of the API means.

use std::time::Duration;

use sdk::HttpReply;
use serde_json::Value;

use crate::after;

/// How long the API wants to be left alone where it does not say.
const UNSAID_WAIT: Duration = Duration::from_secs(60);

/// Characters of the tracker's words that are passed on.
const SHOWN: usize = 300;

/// An answer that is not the one that was wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Somewhere else, at this address.
    Elsewhere(String),
    /// Too many requests; nothing was done.
    TooMuch { wait: Duration, message: String },
    /// A word that workflows know, and what the tracker says.
    No { word: &'static str, message: String },
    /// The server has a fault of its own.
    Away(String),
}

/// `None` for a success, and for "not modified".
pub(super) fn refusal(reply: &HttpReply, unix_now: u64) -> Option<Refused> {
    let message = message(reply);
    Some(match reply.status {
        200..=299 | 304 => return None,
        301 | 302 | 307 | 308 => match reply.header("location") {
            Some(location) => Refused::Elsewhere(location.to_owned()),
            None => Refused::Away(message),
        },
        403 | 429 if too_much(reply, &message) => {
            Refused::TooMuch { wait: wait(reply, unix_now), message }
        }
        401 => Refused::No { word: "AUTH_FAILED", message },
        403 => Refused::No { word: "AUTH_FAILED", message },
        404 | 410 => Refused::No { word: "NOT_FOUND", message },
        400 | 422 => Refused::No { word: "VALIDATION_ERROR", message },
        _ => Refused::Away(message),
    })
}

/// Whether a 403 is about the number of requests, not about rights. The second limit has no code of its own.
fn too_much(reply: &HttpReply, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    reply.status == 429
        || reply.header("retry-after").is_some()
        || reply.header("x-ratelimit-remaining") == Some("0")
        || ["rate limit", "abuse detection"].iter().any(|words| message.contains(words))
}

fn wait(reply: &HttpReply, unix_now: u64) -> Duration {
    let number = |name: &str| reply.header(name)?.trim().parse::<u64>().ok();
    if let Some(seconds) = number("retry-after") {
        return Duration::from_secs(seconds);
    }
    // By the server's own clock: a wait that came out short by ours would make it worse.
    let now = reply.header("date").and_then(http_date).unwrap_or(unix_now);
    match number("x-ratelimit-reset") {
        Some(reset) if reply.header("x-ratelimit-remaining") == Some("0") => {
            Duration::from_secs(reset.saturating_sub(now))
        }
        _ => UNSAID_WAIT,
    }
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [_weekday, day, month, year, time, "GMT"] = text.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let ms = after::unix_ms(&format!("{year}-{month:02}-{day}T{time}Z"))?;
    u64::try_from(ms / 1000).ok()
}

/// `status 404: Not Found`, in one line; the first fault is named as well.
fn message(reply: &HttpReply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let mut said = body["message"].as_str().unwrap_or_default().to_owned();
    let fault = &body["errors"][0];
    if let Some(fault) = fault["message"].as_str().or(fault["code"].as_str()).or(fault.as_str()) {
        said = format!("{said} ({fault})");
    }
    let said: String =
        said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
    match said.trim() {
        "" => format!("status {}", reply.status),
        said => format!("status {}: {said}", reply.status),
    }
}

/// The address of the next page: `<https://…?page=2>; rel="next", …`.
pub(super) fn next_page(reply: &HttpReply) -> Option<String> {
    reply.header("link")?.split(',').find_map(|link| {
        let (address, relations) = link.trim().strip_prefix('<')?.split_once('>')?;
        relations.split(';').any(|part| part.trim() == "rel=\"next\"").then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_servers_write_them() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }
}
