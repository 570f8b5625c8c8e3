//! JSON text to values whose numbers keep their text (§2: numbers are kept as written).

use serde_json::{Map, Number, Value};

/// Reads exactly one document. As `serde_json` does, but `1E5` stays `1E5`, where its parser would make it `1e+5`.
///
/// # Errors
/// Those of `serde_json`: no document, several, not JSON, nested too deeply, an escape of half a surrogate pair.
pub(crate) fn read(text: &str) -> Result<Value, serde_json::Error> {
    let value: Value = serde_json::from_str(text)?;
    // Only exponents are rewritten; hardly any document has one, but many have an `e` in a text.
    if !has_exponent(text) {
        return Ok(value);
    }
    drop(value);
    Ok(Exact { text, at: 0 }.value())
}

/// Whether a number has one. Texts do not count: every other id has a digit before an `e`.
pub(crate) fn has_exponent(text: &str) -> bool {
    let mut before = 0_u8;
    outside_of_texts(text).any(|byte| {
        let found = matches!(byte, b'e' | b'E') && before.is_ascii_digit();
        before = byte;
        found
    })
}

/// How deeply arrays and objects are nested.
pub(crate) fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in outside_of_texts(text) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The bytes that do not belong to a text; of a text only its first quote.
fn outside_of_texts(text: &str) -> impl Iterator<Item = u8> {
    let mut bytes = text.bytes();
    std::iter::from_fn(move || {
        let byte = bytes.next()?;
        if byte == b'"' {
            while let Some(inside) = bytes.next().filter(|inside| *inside != b'"') {
                if inside == b'\\' {
                    bytes.next();
                }
            }
        }
        Some(byte)
    })
}

/// Reads a text that is known to be one JSON document, so that every step has only one way to go.
struct Exact<'a> {
    text: &'a str,
    at: usize,
}

impl Exact<'_> {
    fn value(&mut self) -> Value {
        match self.peek() {
            b'{' => {
                let mut members = Map::new();
                while self.next_item(b'{', b'}', members.is_empty()) {
                    let name = self.string();
                    self.take(b':');
                    let value = self.value();
                    members.insert(name, value);
                }
                Value::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                while self.next_item(b'[', b']', items.is_empty()) {
                    items.push(self.value());
                }
                Value::Array(items)
            }
            b'"' => Value::String(self.string()),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest
                    .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                    .unwrap_or(rest.len());
                self.at += end;
                // Hidden, but the only way to a number with a text of our own; `numbers_keep_their_text` watches over it.
                Value::Number(Number::from_string_unchecked(rest[..end].to_owned()))
            }
        }
    }

    /// Steps over the opening bracket or a comma; false at the end, which it steps over too.
    fn next_item(&mut self, open: u8, close: u8, first: bool) -> bool {
        if first && self.peek() == open {
            self.at += 1;
        } else if self.peek() == b',' {
            self.at += 1;
            return true;
        }
        let more = self.peek() != close;
        self.at += usize::from(!more);
        more
    }

    fn string(&mut self) -> String {
        self.peek();
        let bytes = &self.text.as_bytes()[self.at..];
        let mut end = 1;
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let token = &self.text[self.at..=self.at + end];
        self.at += end + 1;
        serde_json::from_str(token).expect("a string of a document that has been read")
    }

    fn word(&mut self, word: &str, value: Value) -> Value {
        self.at += word.len();
        value
    }

    fn take(&mut self, byte: u8) {
        debug_assert_eq!(self.peek(), byte);
        self.peek();
        self.at += 1;
    }

    /// The next byte that is no blank; the text has one wherever this is asked.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while matches!(bytes[self.at], b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
        bytes[self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text() {
        for text in
            ["1E5", "-1.50e-07", "0e0", "1e3", "12345678901234567890123.0E+1", "-0", "-0.0", "1.0"]
        {
            assert_eq!(read(text).unwrap().to_string(), text);
            let nested = format!(r#"{{"a":[{text},{{"b":{text}}}],"c":{text}}}"#);
            assert_eq!(read(&nested).unwrap().to_string(), nested);
        }
    }

    #[test]
    fn texts_have_no_exponent() {
        for (text, want) in [
            (r#"{"id":"0e0","q":"\\\"1e5","n":12.5}"#, false),
            (r#"{"0e0":true}"#, false),
            (r#"["a\\",1e5]"#, true),
            ("[1.5E-3]", true),
            ("[true,false]", false),
        ] {
            assert_eq!(has_exponent(text), want, "{text}");
        }
    }

    #[test]
    fn nesting_is_counted_outside_of_texts() {
        for (text, want) in [
            ("", 0),
            ("7", 0),
            ("[]", 1),
            ("[[],[{}]]", 3),
            (r#"["[[\"[[", {"]": 1}]"#, 2),
            ("]][", 1),
        ] {
            assert_eq!(depth(text), want, "{text}");
        }
    }

    #[test]
    fn both_ways_read_the_same() {
        for text in [
            r#" { "a" : [ ] , "b" : { } , "c" : [ { } , [ ] ] , "e1" : "1e5 \" \\ é \u00e9 \ud83c\udfaf" } "#,
            r#"[true,false,null,"",[[1]],-12.25,{"k":{"k":0}}]"#,
            r#"{"a":1,"b":2,"a":3}"#,
            "\"x\"",
            "7",
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Exact { text, at: 0 }.value(), plain, "{text}");
            assert_eq!(Exact { text, at: 0 }.value().to_string(), plain.to_string(), "{text}");
        }
    }

    #[test]
    fn the_first_item_of_a_list_may_be_a_list() {
        let text = "[[[1e1]],{\"a\":{\"b\":1e1}}]";
        assert_eq!(read(text).unwrap().to_string(), text);
    }

    #[test]
    fn only_one_document_is_read() {
        for text in ["", "1e5 1e5", "[1e5", "01e5", "1e", "{\"a\":1e5}}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
