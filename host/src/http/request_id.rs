//! The name under which one request is found again in the log.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use http::header::HeaderMap;

/// Header that carries the id, in both directions.
pub(crate) const HEADER: http::HeaderName = http::HeaderName::from_static("x-request-id");

/// The sender's own id where it is sane (1 to 64 of `A-Z a-z 0-9 . _ -`, so that it can forge no log line), else a
/// minted one.
pub(crate) fn of(headers: &HeaderMap) -> HeaderValue {
    match headers.get(HEADER) {
        Some(theirs) if is_sane(theirs.as_bytes()) => theirs.clone(),
        _ => mint(),
    }
}

fn is_sane(id: &[u8]) -> bool {
    (1..=64).contains(&id.len())
        && id.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// `<run>-<count>` in hexadecimal: unique in a run, unlike those of other runs, and cheaper than random bytes for each.
fn mint() -> HeaderValue {
    static RUN: OnceLock<u32> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    // Without a random source the process id still tells runs apart; an id is a name, not a secret.
    let run = RUN.get_or_init(|| getrandom::u32().unwrap_or_else(|_| std::process::id()));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut text = *b"00000000-000000000000";
    hex_into(&mut text[..8], u64::from(*run));
    let digits = hex_len(count).max(4);
    hex_into(&mut text[9..9 + digits], count);
    HeaderValue::from_bytes(&text[..9 + digits])
        .expect("hexadecimal digits and a dash are a header value")
}

fn hex_len(number: u64) -> usize {
    (16 - number.leading_zeros() as usize / 4).min(12)
}

fn hex_into(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_sane_id_and_replaces_any_other() {
        for (theirs, kept) in [
            ("abc-123_X.9", true),
            ("a", true),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
            ("", false),
            ("a b", false),
            ("a\tb", false),
            ("{}", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_str(theirs).unwrap());
            assert_eq!(of(&headers).as_bytes() == theirs.as_bytes(), kept, "{theirs:?}");
        }
    }

    #[test]
    fn minted_ids_differ_and_are_sane() {
        let (one, other) = (mint(), mint());
        assert_ne!(one, other);
        assert!(is_sane(one.as_bytes()), "{one:?}");
    }
}
