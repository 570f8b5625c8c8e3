//! Values that nobody means and somebody sends.

/// Name and text of each.
pub(crate) fn hostile() -> Vec<(&'static str, String)> {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    vec![
        ("the empty text", String::new()),
        ("blanks", " \t\n".to_owned()),
        ("1 MiB of text", "a".repeat(1 << 20)),
        ("a NUL", "a\0b".to_owned()),
        ("emoji", "👩‍👩‍👧‍👦🧪é\u{301}\u{202e}".to_owned()),
        ("JSON 1,000 levels deep", nested(1_000)),
        ("JSON 100,000 levels deep", nested(100_000)),
        ("half a JSON object", "{\"a\": [1, \"".to_owned()),
        ("a JSON object", "{\"\": {\"a\": [null, 1e308, \"\\ud83d\"]}}".to_owned()),
        ("a JSON list", "[0, -1, 1.5, true, \"x\"]".to_owned()),
        ("a number", "12".to_owned()),
        ("a negative number", "-1".to_owned()),
        ("a number beyond 64 bits", "18446744073709551616".to_owned()),
        ("a number beyond a double", "1e400".to_owned()),
        ("NaN", "NaN".to_owned()),
        ("`true`", "true".to_owned()),
        ("`null`", "null".to_owned()),
        ("a path upwards", "../escape".to_owned()),
        ("SQL", "'; DROP TABLE cards; --".to_owned()),
        ("a line that looks like a flag", "--help\r\n{{list_cards}} $x ${1.id} <any>".to_owned()),
    ]
}
