//! Looking into a checked text.

use std::borrow::Cow;
use std::ops::Range;

use crate::{ParseError, Specials, check, string};

/// A checked JSON text, looked into without decoding what is not asked for. Blanks around values
/// are no part of them.
///
/// All looks are linear in the text they pass over, which is fast (strings are skipped by block).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// Where a top-level member of an object stands in the object's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The key, quotes included.
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

impl<'a> Json<'a> {
    /// Checks the text; [`Specials::Accept`] where it may come from a file.
    pub fn parse(text: &'a str, specials: Specials) -> Result<Self, ParseError> {
        check(text, specials)?;
        Ok(Self::trusted(text))
    }

    /// Takes a text that has been checked or rendered before. What is found in any other text is
    /// unspecified (but looking never panics).
    pub fn trusted(text: &'a str) -> Self {
        Self(text.trim_matches([' ', '\n', '\r', '\t']))
    }

    /// The value that a trusted text starts with; what follows it is left out.
    pub fn leading(text: &'a str) -> Self {
        let start = pass_blanks(text.as_bytes(), 0);
        Self(text.get(start..value_end(text.as_bytes(), start)).unwrap_or(""))
    }

    /// The text of the value.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// What the value is. Special numbers (`NaN` …) are numbers.
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            None | Some(b'n') => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether the value is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// The member of an object with this key; the last one if the text repeats it.
    pub fn get(self, key: &str) -> Option<Json<'a>> {
        let mut found = None;
        for span in field_spans(self.0) {
            if string::string_eq(&self.0[span.key], key) {
                found = Some(span.value);
            }
        }
        found.map(|range| Json(&self.0[range]))
    }

    /// The text of a string; a lone surrogate shows as U+FFFD.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        self.inner().map(|inner| string::decode(inner).0)
    }

    /// The text of a string, for comparing: `None` also when it holds a lone surrogate, which no
    /// Rust string equals.
    pub fn as_str_exact(self) -> Option<Cow<'a, str>> {
        self.inner().map(string::decode).filter(|(_, exact)| *exact).map(|(text, _)| text)
    }

    /// Whether the value is a string equal to `plain`; allocates nothing.
    pub fn eq_str(self, plain: &str) -> bool {
        string::string_eq(self.0, plain)
    }

    fn inner(self) -> Option<&'a str> {
        self.0.strip_prefix('"')?.strip_suffix('"')
    }

    /// The value of `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The value of an integer (a number without fraction and exponent) that fits.
    pub fn as_i64(self) -> Option<i64> {
        (self.kind() == Kind::Number).then(|| self.0.parse().ok())?
    }

    /// The value of any number, rounded to a double; `NaN` and the infinities included.
    pub fn as_f64(self) -> Option<f64> {
        match self.0 {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => (self.kind() == Kind::Number).then(|| text.parse().ok())?,
        }
    }

    /// `null`, `false`, zero, `""`, `[]`, `{}` (the app-store contract, notation).
    pub fn is_falsy(self) -> bool {
        match self.kind() {
            Kind::Null => true,
            Kind::Bool => self.0 == "false",
            Kind::String => self.0 == "\"\"",
            Kind::Number => self.as_f64() == Some(0.0),
            Kind::Array | Kind::Object => {
                self.0.get(1..self.0.len() - 1).is_some_and(|t| t.trim_ascii().is_empty())
            }
        }
    }

    /// The members of an array, in order; nothing for any other value.
    pub fn items(self) -> Items<'a> {
        let at = if self.kind() == Kind::Array { 1 } else { self.0.len() };
        Items { text: self.0, at }
    }

    /// The members of an object in order, repeated keys included; nothing for any other value.
    pub fn fields(self) -> Fields<'a> {
        let at = if self.is_object() { 1 } else { self.0.len() };
        Fields { text: self.0, at }
    }
}

/// Members of an array.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let start = next_member(self.text.as_bytes(), self.at)?;
        self.at = value_end(self.text.as_bytes(), start);
        self.text.get(start..self.at).map(Json)
    }
}

/// Members of an object.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    text: &'a str,
    at: usize,
}

impl Fields<'_> {
    fn next_span(&mut self) -> Option<Span> {
        let bytes = self.text.as_bytes();
        let start = next_member(bytes, self.at)?;
        let key = start..value_end(bytes, start);
        let mut from = pass_blanks(bytes, key.end);
        if bytes.get(from) != Some(&b':') {
            return None;
        }
        from = pass_blanks(bytes, from + 1);
        self.at = value_end(bytes, from);
        self.text.get(key.clone())?;
        self.text.get(from..self.at)?;
        Some(Span { key, value: from..self.at })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let span = self.next_span()?;
        let key = Json(&self.text[span.key]).as_str()?;
        Some((key, Json(&self.text[span.value])))
    }
}

/// The top-level members of an object, in order, repeated keys included, without decoding the
/// values. Empty for any text that is not an object.
pub fn field_spans(object_text: &str) -> Vec<Span> {
    let mut fields = Fields { text: object_text, at: pass_blanks(object_text.as_bytes(), 0) };
    let mut spans = Vec::new();
    if object_text.as_bytes().get(fields.at) == Some(&b'{') {
        fields.at += 1;
        while let Some(span) = fields.next_span() {
            spans.push(span);
        }
    }
    spans
}

fn pass_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Where the next member starts, if the array or object does not end here.
fn next_member(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = pass_blanks(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = pass_blanks(bytes, at + 1);
    }
    match bytes.get(at) {
        None | Some(b']' | b'}') => None,
        Some(_) => Some(at),
    }
}

/// Where the string that starts at `at` ends.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(n) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + n] == b'"' {
            return at + n + 1;
        }
        at += n + 2;
    }
    bytes.len()
}

/// Where the value that starts at `at` ends.
fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            let mut at = at;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        _ => {
            let mut at = at;
            while bytes
                .get(at)
                .is_some_and(|b| !matches!(b, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
            {
                at += 1;
            }
            at
        }
    }
}
