//! Text forms the contracts fix: what counts as blank, how a value is named or quoted in a message.

use json_text::{Json, Kind, Layout, Specials};

/// Whether a character counts as whitespace: Unicode's, and the four separators U+001C–U+001F
/// (the app-store contract §8).
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The text without whitespace at both ends.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Whether the text is empty or nothing but whitespace.
pub fn is_blank(text: &str) -> bool {
    trim(text).is_empty()
}

/// The name of a value's type in messages: `dict`, `list`, `str`, `int`, `float`, `bool` or `NoneType`.
pub fn type_name(value: Json<'_>) -> &'static str {
    match value.kind() {
        Kind::Object => "dict",
        Kind::Array => "list",
        Kind::String => "str",
        Kind::Bool => "bool",
        Kind::Null => "NoneType",
        Kind::Number if is_integer(value.text()) => "int",
        Kind::Number => "float",
    }
}

/// Whether the text of a number is that of an integer: digits, perhaps behind a minus.
pub fn is_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A member of an array as text: a string as it is, a number in canonical form, `True`, `False`, `None`
/// (the app-store contract §8.3). Nested values give their JSON text.
pub fn member_text(value: Json<'_>) -> String {
    match value.kind() {
        Kind::String => value.as_str().unwrap_or_default().into_owned(),
        Kind::Null => "None".to_owned(),
        Kind::Bool => if value.as_bool() == Some(true) { "True" } else { "False" }.to_owned(),
        Kind::Number | Kind::Array | Kind::Object => canonical(value),
    }
}

/// The value on one line in the store's form, so that texts of equal values of one type are equal (the
/// app-store contract §4).
pub fn canonical(value: Json<'_>) -> String {
    let mut text = String::new();
    match json_text::render(value.text(), Layout::Line, Specials::Accept, &mut text) {
        Ok(()) => text,
        // Cannot be for a text that was checked; one that was not stays as it stands.
        Err(_) => value.text().to_owned(),
    }
}

/// The text, unless it is empty: what an optional field stores.
pub fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The text in quotes as messages show a refused parameter: single ones, double ones if it holds a
/// single one and no double one; backslash and unprintable characters escaped (the app-store contract §8.3).
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c if c <= '\u{ff}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c <= '\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push(quote);
    out
}

/// Whether a character shows as itself. The standard library keeps this table for `Debug`; combining
/// marks count as printable there once a letter stands before them.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let pair: String = ['a', c].into_iter().collect();
    pair.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_knows_the_separators() {
        for blank in ["", " ", "\u{1c}\u{1f}", "\u{a0}\u{2003}\n", "\u{85}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        assert!(!is_blank("\u{200b}"), "a zero-width space is no whitespace");
        assert_eq!(trim("\u{1d} a b \t"), "a b");
    }

    #[test]
    fn quoting_follows_the_contract() {
        for (raw, want) in [
            ("[\"a\"", "'[\"a\"'"),
            ("[it's", "\"[it's\""),
            ("['\"", "'[\\'\"'"),
            ("[\\ \n\r\t", "'[\\\\ \\n\\r\\t'"),
            ("[\u{0}\u{7f}\u{a0}\u{ad}", "'[\\x00\\x7f\\xa0\\xad'"),
            ("[\u{200b}\u{2028}\u{e000}", "'[\\u200b\\u2028\\ue000'"),
            ("[\u{e0001}\u{10ffff}", "'[\\U000e0001\\U0010ffff'"),
            ("[é🙂e\u{301}", "'[é🙂e\u{301}'"),
        ] {
            assert_eq!(quoted(raw), want, "{raw:?}");
        }
    }

    #[test]
    fn members_become_text() {
        let list =
            Json::parse(r#"["é ",1,-0,2.50,1e3,true,false,null]"#, Specials::Refuse).unwrap();
        let texts: Vec<_> = list.items().map(member_text).collect();
        assert_eq!(texts, ["é ", "1", "0", "2.5", "1000.0", "True", "False", "None"]);
    }

    #[test]
    fn types_have_names() {
        for (text, want) in [
            ("{}", "dict"),
            ("[]", "list"),
            ("\"x\"", "str"),
            ("-12", "int"),
            ("1.0", "float"),
            ("1e3", "float"),
            ("true", "bool"),
            ("null", "NoneType"),
        ] {
            assert_eq!(type_name(Json::trusted(text)), want, "{text}");
        }
    }
}
