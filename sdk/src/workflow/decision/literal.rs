//! The tolerant form of a value: what models write when they mean JSON. Single quotes, `True`, `False`,
//! `None` beside `true`, `false`, `null`, trailing commas, tuples as lists.

use serde_json::{Map, Number, Value};

/// Deepest nesting of lists and objects.
const DEPTH: usize = 64;

/// Whether a value keeps to the nesting limit and its numbers are finite.
pub(super) fn is_plain(value: &Value) -> bool {
    fn within(value: &Value, room: usize) -> bool {
        match value {
            Value::Array(items) => room > 0 && items.iter().all(|item| within(item, room - 1)),
            Value::Object(fields) => room > 0 && fields.values().all(|item| within(item, room - 1)),
            Value::Number(number) => is_finite(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::String(_) => true,
        }
    }
    within(value, DEPTH)
}

fn is_finite(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Reads the whole text as one value; `None` if it is none.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text, room: DEPTH };
    let first = reader.value()?;
    if reader.next_is(',') {
        // A tuple may go without its parentheses.
        let mut items = vec![first];
        reader.items(&mut items, None)?;
        return Some(Value::Array(items));
    }
    reader.skip();
    reader.rest.is_empty().then_some(first)
}

struct Reader<'a> {
    rest: &'a str,
    room: usize,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes `mark` if it comes next.
    fn next_is(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.skip();
        match self.rest.chars().next()? {
            '{' | '[' | '(' => {
                self.room = self.room.checked_sub(1)?;
                let value = self.nested();
                self.room += 1;
                value
            }
            quote @ ('"' | '\'') => self.text(quote).map(Value::String),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn nested(&mut self) -> Option<Value> {
        if self.next_is('{') {
            return self.object();
        }
        let mut items = Vec::new();
        if self.next_is('[') {
            if !self.next_is(']') {
                items.push(self.value()?);
                if self.next_is(',') {
                    self.items(&mut items, Some(']'))?;
                } else if !self.next_is(']') {
                    return None;
                }
            }
            return Some(Value::Array(items));
        }
        self.rest = self.rest.strip_prefix('(')?;
        if self.next_is(')') {
            return Some(Value::Array(items));
        }
        let first = self.value()?;
        if self.next_is(')') {
            return Some(first);
        }
        items.push(first);
        if !self.next_is(',') {
            return None;
        }
        self.items(&mut items, Some(')'))?;
        Some(Value::Array(items))
    }

    /// Reads what follows a comma, up to `end` (or the end of the text).
    fn items(&mut self, items: &mut Vec<Value>, end: Option<char>) -> Option<()> {
        loop {
            let ended = match end {
                Some(end) => self.next_is(end),
                None => {
                    self.skip();
                    self.rest.is_empty()
                }
            };
            if ended {
                return Some(());
            }
            items.push(self.value()?);
            if !self.next_is(',') {
                return match end {
                    Some(end) => self.next_is(end).then_some(()),
                    None => {
                        self.skip();
                        self.rest.is_empty().then_some(())
                    }
                };
            }
        }
    }

    fn object(&mut self) -> Option<Value> {
        let mut fields = Map::new();
        while !self.next_is('}') {
            self.skip();
            let quote = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let key = self.text(quote)?;
            if !self.next_is(':') {
                return None;
            }
            let value = self.value()?;
            fields.insert(key, value);
            if !self.next_is(',') {
                return self.next_is('}').then_some(Value::Object(fields));
            }
        }
        Some(Value::Object(fields))
    }

    fn text(&mut self, quote: char) -> Option<String> {
        self.rest = self.rest.strip_prefix(quote)?;
        let mut out = String::new();
        loop {
            let c = self.take()?;
            match c {
                '\n' => return None,
                '\\' => self.escape(&mut out)?,
                c if c == quote => return Some(out),
                c => out.push(c),
            }
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        match self.take()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'a' => out.push('\u{7}'),
            'v' => out.push('\u{b}'),
            '\n' => {}
            c @ ('"' | '\'' | '\\' | '/') => out.push(c),
            'x' => out.push(char::from_u32(self.hex(2)?)?),
            'u' => {
                let unit = self.hex(4)?;
                out.push(self.pair(unit));
            }
            'U' => out.push(char::from_u32(self.hex(8)?)?),
            c => {
                out.push('\\');
                out.push(c);
            }
        }
        Some(())
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.rest.get(..digits)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.rest = &self.rest[digits..];
        u32::from_str_radix(text, 16).ok()
    }

    /// A surrogate pair is one character, a lone half the replacement character.
    fn pair(&mut self, unit: u32) -> char {
        if (0xd800..0xdc00).contains(&unit)
            && let Some(low) = self.rest.strip_prefix("\\u").and_then(|rest| rest.get(..4))
            && let Ok(low) = u32::from_str_radix(low, 16)
            && (0xdc00..0xe000).contains(&low)
        {
            self.rest = &self.rest[6..];
            return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
                .unwrap_or('\u{fffd}');
        }
        char::from_u32(unit).unwrap_or('\u{fffd}')
    }

    fn number(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        // JSON's own rules for what a number is.
        let number: Number = serde_json::from_str(text).ok()?;
        is_finite(text).then_some(Value::Number(number))
    }

    fn word(&mut self) -> Option<Value> {
        let end =
            self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            _ => None,
        }
    }
}
