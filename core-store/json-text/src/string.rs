//! Strings: scanning, the escapes of the app-store contract §4, comparing without decoding.

use std::borrow::Cow;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes one JSON string in the store's form, quotes included: only `"`, `\` and U+0000-001F are
/// escaped.
pub fn quote(s: &str, out: &mut String) {
    out.reserve(s.len() + 2);
    out.push('"');
    push_escaped(s, out);
    out.push('"');
}

/// Where the next byte stands, at or after `from`, that ends a plain run: `"`, `\` or a control.
pub(crate) fn plain_end(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // Borrows may mark bytes above a true hit, never below it, so the lowest mark is right.
        let hits = has_zero(word ^ (ONES * u64::from(b'"')))
            | has_zero(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS);
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
            break;
        }
        at += 1;
    }
    at
}

pub(crate) fn push_escaped(s: &str, out: &mut String) {
    let bytes = s.as_bytes();
    let mut from = 0;
    loop {
        let end = plain_end(bytes, from);
        out.push_str(&s[from..end]);
        let Some(byte) = bytes.get(end) else { return };
        push_escape(u32::from(*byte), out);
        from = end + 1;
    }
}

fn push_escape(code: u32, out: &mut String) {
    match code {
        0x22 => out.push_str("\\\""),
        0x5C => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        0x0C => out.push_str("\\f"),
        0x0A => out.push_str("\\n"),
        0x0D => out.push_str("\\r"),
        0x09 => out.push_str("\\t"),
        _ => {
            out.push_str("\\u");
            for shift in [12, 8, 4, 0] {
                out.push(char::from(HEX[(code >> shift) as usize & 15]));
            }
        }
    }
}

/// One decoded piece of the inside of a string literal.
pub(crate) enum Piece<'a> {
    Plain(&'a str),
    Char(char),
    /// Half of a surrogate pair that stands alone: not a character, but kept (S15).
    Lone(u32),
}

/// The pieces of the inside of a checked string literal (without its quotes). Of any other text, pieces of some kind.
pub(crate) struct Pieces<'a> {
    inner: &'a str,
    /// Always between two characters.
    at: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(inner: &'a str) -> Self {
        Self { inner, at: 0 }
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.inner.as_bytes().get(at..at + 4)?;
        digits.iter().try_fold(0, |code, b| Some(code << 4 | char::from(*b).to_digit(16)?))
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let bytes = self.inner.as_bytes();
        let rest = bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        if rest[0] != b'\\' {
            let end = memchr::memchr(b'\\', rest).map_or(bytes.len(), |n| self.at + n);
            let plain = &self.inner[self.at..end];
            self.at = end;
            return Some(Piece::Plain(plain));
        }
        let escape = self.inner[self.at + 1..].chars().next()?;
        if escape != 'u' {
            self.at += 1 + escape.len_utf8();
            return Some(Piece::Char(match escape {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }));
        }
        let code = self.hex4(self.at + 2)?;
        self.at += 6;
        if let Some(c) = char::from_u32(code) {
            return Some(Piece::Char(c));
        }
        if code < 0xDC00
            && bytes.get(self.at..self.at + 2) == Some(b"\\u")
            && let Some(low) = self.hex4(self.at + 2).filter(|low| (0xDC00..0xE000).contains(low))
        {
            self.at += 6;
            let joined = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            return char::from_u32(joined).map(Piece::Char);
        }
        Some(Piece::Lone(code))
    }
}

/// Writes the inside of a checked string literal in the store's form.
pub(crate) fn push_reescaped(inner: &str, out: &mut String) {
    for piece in Pieces::new(inner) {
        match piece {
            Piece::Plain(text) => out.push_str(text),
            Piece::Char(c) if c < ' ' || c == '"' || c == '\\' => push_escape(c.into(), out),
            Piece::Char(c) => out.push(c),
            Piece::Lone(code) => push_escape(code, out),
        }
    }
}

/// Decodes the inside of a checked literal; a lone surrogate becomes U+FFFD and clears `exact`.
pub(crate) fn decode(inner: &str) -> (Cow<'_, str>, bool) {
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return (Cow::Borrowed(inner), true);
    }
    let mut exact = true;
    let mut out = String::with_capacity(inner.len());
    for piece in Pieces::new(inner) {
        match piece {
            Piece::Plain(text) => out.push_str(text),
            Piece::Char(c) => out.push(c),
            Piece::Lone(_) => {
                exact = false;
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
    (Cow::Owned(out), exact)
}

/// Whether a checked JSON text is a string that decodes to exactly `plain`. A string with a lone
/// surrogate equals no `plain`.
pub fn string_eq(json_string_text: &str, plain: &str) -> bool {
    let Some(inner) = json_string_text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return false;
    };
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return inner == plain;
    }
    let mut rest = plain;
    for piece in Pieces::new(inner) {
        let after = match piece {
            Piece::Plain(text) => rest.strip_prefix(text),
            Piece::Char(c) => rest.strip_prefix(c),
            Piece::Lone(_) => None,
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}
