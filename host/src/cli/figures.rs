//! What a host says of an operation, as people read it. A host that runs may be any program, so no text of it steers the
//! terminal.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::visible;

/// The text of this field; empty if there is none.
pub(super) fn text(of: &Value, key: &str) -> String {
    visible::line(of[key].as_str().unwrap_or_default()).into_owned()
}

/// The whole number of this field; empty if there is none.
pub(super) fn number(of: &Value, key: &str) -> String {
    of[key].as_u64().map(|number| number.to_string()).unwrap_or_default()
}

/// The beginning of its hash, which is enough to tell one build from another.
pub(super) fn short_hash(of: &Value) -> String {
    text(of, "hash").chars().take(12).collect()
}

/// Microseconds in three digits and the unit that fits.
pub(super) fn time(micros: &Value) -> String {
    let Some(micros) = micros.as_u64() else { return String::new() };
    let seconds = Duration::from_micros(micros).as_secs_f64();
    let (value, unit) = match micros {
        0..1_000 => return format!("{micros} µs"),
        1_000..1_000_000 => (seconds * 1e3, "ms"),
        1_000_000.. => (seconds, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

/// A number of bytes in MiB.
pub(super) fn bytes(bytes: &Value) -> String {
    let mib = bytes.as_f64().unwrap_or_default() / f64::from(1 << 20);
    format!("{mib:.1} MiB")
}

/// Seconds since 1970 as a date and a time.
pub(super) fn built(seconds: &Value) -> String {
    let moment = seconds.as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map(|moment| format!("{moment:.0}").replace('T', " ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_shown_in_the_unit_that_fits() {
        for (micros, want) in [
            (json!(7), "7 µs"),
            (json!(999), "999 µs"),
            (json!(1_234), "1.23 ms"),
            (json!(56_789), "56.8 ms"),
            (json!(345_678), "346 ms"),
            (json!(2_500_000), "2.50 s"),
            (json!(null), ""),
        ] {
            assert_eq!(time(&micros), want);
        }
        assert_eq!(built(&json!(1_700_000_000)), "2023-11-14 22:13:20Z");
        assert_eq!(built(&json!(null)), "");
        assert_eq!(bytes(&json!(1_900_000)), "1.8 MiB");
    }
}
