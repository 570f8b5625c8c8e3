//! The one reader: checks a text and tells a [`Sink`] what it meets. No recursion, so depth costs
//! a byte per level.

use crate::{MAX_DEPTH, ParseError, Specials, number, string};

/// Receives a text in order. Strings and numbers come as they stand in the source.
pub(crate) trait Sink {
    fn open(&mut self, object: bool);
    /// `empty` when nothing stood between the brackets.
    fn close(&mut self, object: bool, empty: bool);
    /// Comes before each member of an array.
    fn item(&mut self, first: bool);
    /// The literal without its quotes; `plain` when nothing in it is escaped.
    fn key(&mut self, first: bool, inner: &str, plain: bool);
    fn string(&mut self, inner: &str, plain: bool);
    /// `float` when the number has a fraction or an exponent.
    fn number(&mut self, raw: &str, float: bool);
    fn word(&mut self, word: &'static str);
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    specials: Specials,
}

/// Reads one JSON value and nothing else, which may nest `levels` deep.
pub(crate) fn walk<S: Sink>(
    text: &str,
    levels: usize,
    specials: Specials,
    sink: &mut S,
) -> Result<(), ParseError> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, specials };
    let mut open: Vec<bool> = Vec::with_capacity(16);
    if text.starts_with('\u{feff}') {
        return Err(reader.fault("unexpected byte order mark"));
    }
    loop {
        // Here a value must start.
        match reader.next_token() {
            Some(bracket @ (b'{' | b'[')) => {
                if open.len() >= levels {
                    return Err(reader.fault(format!("nested deeper than {MAX_DEPTH} levels")));
                }
                let object = bracket == b'{';
                reader.at += 1;
                sink.open(object);
                let end = if object { b'}' } else { b']' };
                if reader.next_token() == Some(end) {
                    reader.at += 1;
                    sink.close(object, true);
                } else {
                    open.push(object);
                    if object {
                        reader.key(true, sink)?;
                    } else {
                        sink.item(true);
                    }
                    continue;
                }
            }
            Some(b'"') => {
                let (inner, plain) = reader.string()?;
                sink.string(inner, plain);
            }
            Some(b'-' | b'0'..=b'9') => reader.number(sink)?,
            Some(b't') => sink.word(reader.word("true")?),
            Some(b'f') => sink.word(reader.word("false")?),
            Some(b'n') => sink.word(reader.word("null")?),
            Some(b'N') => sink.word(reader.special("NaN")?),
            Some(b'I') => sink.word(reader.special("Infinity")?),
            _ => return Err(reader.expected("a value")),
        }
        // A value has ended: close what ends with it, up to the next comma.
        loop {
            let Some(object) = open.last().copied() else {
                return match reader.next_token() {
                    None => Ok(()),
                    Some(_) => Err(reader.expected("the end of the text")),
                };
            };
            match (reader.next_token(), object) {
                (Some(b','), true) => {
                    reader.at += 1;
                    reader.key(false, sink)?;
                    break;
                }
                (Some(b','), false) => {
                    reader.at += 1;
                    sink.item(false);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    reader.at += 1;
                    open.pop();
                    sink.close(object, false);
                }
                (_, true) => return Err(reader.expected("`,` or `}`")),
                (_, false) => return Err(reader.expected("`,` or `]`")),
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn fault(&self, reason: impl Into<String>) -> ParseError {
        ParseError::new(reason, self.text, self.at)
    }

    fn expected(&self, what: &str) -> ParseError {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            None => self.fault(format!("expected {what}, found the end")),
            Some(c) => self.fault(format!("expected {what}, found {c:?}")),
        }
    }

    /// Passes over blanks; the byte that stands there.
    #[inline]
    fn next_token(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    fn key<S: Sink>(&mut self, first: bool, sink: &mut S) -> Result<(), ParseError> {
        if self.next_token() != Some(b'"') {
            return Err(self.expected(if first { "a key or `}`" } else { "a key" }));
        }
        let (inner, plain) = self.string()?;
        if self.next_token() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        sink.key(first, inner, plain);
        Ok(())
    }

    /// Reads a string at its opening quote.
    fn string(&mut self) -> Result<(&'a str, bool), ParseError> {
        let opening = self.at;
        let start = self.at + 1;
        let mut plain = true;
        self.at = start;
        loop {
            self.at = string::plain_end(self.bytes, self.at);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let inner = &self.text[start..self.at];
                    self.at += 1;
                    return Ok((inner, plain));
                }
                Some(b'\\') => {
                    plain = false;
                    self.escape()?;
                }
                Some(byte) => {
                    return Err(
                        self.fault(format!("raw control character U+{byte:04X} in a string"))
                    );
                }
                None => {
                    return Err(ParseError::new("string without an end", self.text, opening));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.fault("`\\u` without four hex digits"));
                }
                self.at += 6;
            }
            _ => return Err(self.fault("unknown escape in a string")),
        }
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn number<S: Sink>(&mut self, sink: &mut S) -> Result<(), ParseError> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
            if self.bytes.get(self.at) == Some(&b'I') {
                self.at = start;
                sink.word(self.special("-Infinity")?);
                return Ok(());
            }
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
            if self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                return Err(self.fault("number with a leading zero"));
            }
        } else if self.digits() == 0 {
            return Err(self.expected("a digit"));
        }
        let mut float = false;
        if self.bytes.get(self.at) == Some(&b'.') {
            float = true;
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let raw = &self.text[start..self.at];
        if float && self.specials == Specials::Refuse && number::overflows(raw) {
            return Err(ParseError::new("number out of range", self.text, start));
        }
        sink.number(raw, float);
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<&'static str, ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(word)
    }

    fn special(&mut self, word: &'static str) -> Result<&'static str, ParseError> {
        let start = self.at;
        let word = self.word(word)?;
        match self.specials {
            Specials::Accept => Ok(word),
            Specials::Refuse => {
                Err(ParseError::new(format!("`{word}` is not JSON"), self.text, start))
            }
        }
    }
}
