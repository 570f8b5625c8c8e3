//! The lexer: where a text of SQL is code, and where its characters stand for themselves.
//!
//! It agrees with the engine in use rule by rule (the SQL contract §4): a difference would let a
//! reference in a text run, or a parameter leave its quotes. The rules of each engine were read from
//! its scanner; `lexer/tests.rs` compares them with the engines themselves.

use std::collections::HashMap;

use super::error::{Malformed, Place};
use super::refs::{self, Ref};

/// Whose rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite: comments do not nest, no dollar text, no `E'…'`; `[…]` and `` `…` `` are identifiers.
    Sqlite,
    /// DuckDB: comments nest, dollar text, `E'…'`; a carriage return ends a line comment.
    DuckDb,
}

/// One stretch of a statement, in order; all stretches together are the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Code without references and parameters, blanks included.
    Code(&'a str),
    /// A blank that the engine may or may not know as one; it is given an ordinary one.
    Blank,
    /// Part of a text or of an identifier (its quotes, its characters), or a dollar text.
    Quoted(&'a str),
    /// A comment.
    Comment(&'a str),
    /// `$name`; how it is written down depends on where it stands.
    Param(&'a str, Quoting),
    /// `{{…}}`.
    Ref(Ref<'a>),
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// In code: the value becomes a literal.
    Code,
    /// In `'…'`.
    Text,
    /// In `E'…'`, where a backslash is special too.
    EscapeText,
    /// In `"…"`.
    Identifier,
}

/// Splits a statement. On an error also what was read before it.
pub fn split(sql: &str, dialect: Dialect) -> (Vec<Piece<'_>>, Result<(), Malformed>) {
    let mut lexer = Lexer {
        sql,
        bytes: sql.as_bytes(),
        at: 0,
        code: 0,
        dialect,
        pieces: Vec::new(),
        tags: None,
    };
    let outcome = lexer.run();
    if outcome.is_ok() {
        lexer.end_code();
    }
    (lexer.pieces, outcome)
}

/// Whether this character may stand in a name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a name may start with this character.
pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// The length of the name that `text` starts with.
pub fn name_len(text: &[u8]) -> usize {
    if text.first().is_some_and(|b| is_name_start(*b)) {
        text.iter().take_while(|b| is_name(**b)).count()
    } else {
        0
    }
}

struct Lexer<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the code that is no piece yet starts.
    code: usize,
    dialect: Dialect,
    pieces: Vec<Piece<'a>>,
    /// Where each `$tag$` stands last, once one was met.
    tags: Option<HashMap<&'a str, usize>>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), Malformed> {
        if let Some(at) = self.bytes.iter().position(|b| *b == 0) {
            return Err(self.fault(at, "a NUL character cannot stand in SQL"));
        }
        let duckdb = self.dialect == Dialect::DuckDb;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\'' => self.quoted(self.at, b'\'', Some(Quoting::Text), "text")?,
                b'"' => self.quoted(self.at, b'"', Some(Quoting::Identifier), "identifier")?,
                b'`' if !duckdb => self.quoted(self.at, b'`', None, "identifier")?,
                b'[' if !duckdb => self.bracketed()?,
                b'-' if self.next_is(b'-') => self.line_comment(),
                b'/' if self.next_is(b'*') => self.block_comment()?,
                b'{' if self.next_is(b'{') => self.reference()?,
                b'$' => self.dollar()?,
                b'0'..=b'9' => self.number(),
                b'.' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                    self.number()
                }
                _ if self.unicode_blank(self.at) > 0 => {
                    self.end_code();
                    self.pieces.push(Piece::Blank);
                    self.at += self.unicode_blank(self.at);
                    self.code = self.at;
                }
                _ if is_name_start(byte) || byte >= 0x80 => self.word()?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn fault(&self, at: usize, what: &str) -> Malformed {
        Malformed { place: Place::of(self.sql, at), what: what.to_owned() }
    }

    fn next_is(&self, byte: u8) -> bool {
        self.bytes.get(self.at + 1) == Some(&byte)
    }

    fn find(&self, needle: &str, from: usize) -> Option<usize> {
        memchr::memmem::find(self.bytes.get(from..)?, needle.as_bytes()).map(|n| from + n)
    }

    /// Makes the code up to here a piece.
    fn end_code(&mut self) {
        if self.code < self.at {
            self.pieces.push(Piece::Code(&self.sql[self.code..self.at]));
        }
        self.code = self.at;
    }

    /// Makes what stands from `start` up to here a piece that is no code.
    fn push(&mut self, start: usize, piece: impl FnOnce(&'a str) -> Piece<'a>) {
        if start < self.at {
            self.pieces.push(piece(&self.sql[start..self.at]));
        }
        self.code = self.at;
    }

    /// How many bytes a blank takes that is none of ASCII: DuckDB turns these into ordinary blanks
    /// before it scans, while the scanner itself would take them for letters. SQLite passes over a
    /// byte order mark where a token may start.
    fn unicode_blank(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        match (self.dialect, rest) {
            (_, [0xEF, 0xBB, 0xBF, ..]) => 3,
            (Dialect::DuckDb, [0xC2, 0xA0, ..]) => 2,
            (Dialect::DuckDb, [0xE2, 0x80, 0x80..=0x8D | 0xAF, ..])
            | (Dialect::DuckDb, [0xE2, 0x81, 0x9F | 0xA0, ..])
            | (Dialect::DuckDb, [0xE3, 0x80, 0x80, ..]) => 3,
            _ => 0,
        }
    }

    /// A word of code. In both engines a `$` may stand inside one, where it starts no parameter.
    fn word(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            let blank =
                byte >= 0x80 && self.dialect == Dialect::DuckDb && self.unicode_blank(self.at) > 0;
            if blank || !(is_name(byte) || byte >= 0x80 || byte == b'$') {
                break;
            }
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        if self.dialect == Dialect::DuckDb && self.bytes.get(self.at) == Some(&b'\'') {
            match word {
                b"e" | b"E" => {
                    return self.quoted(self.at, b'\'', Some(Quoting::EscapeText), "text");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A number of code. What matters is where it ends: letters after it start a word.
    fn number(&mut self) {
        let digits = |bytes: &[u8], mut at: usize| {
            while let Some(byte) = bytes.get(at) {
                let joined = *byte == b'_' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                if !(byte.is_ascii_digit() || joined) {
                    break;
                }
                at += 1;
            }
            at
        };
        self.at = digits(self.bytes, self.at);
        if self.bytes.get(self.at) == Some(&b'.') && !self.next_is(b'.') {
            self.at = digits(self.bytes, self.at + 1);
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-')));
            let from = self.at + 1 + sign;
            if self.bytes.get(from).is_some_and(u8::is_ascii_digit) {
                self.at = digits(self.bytes, from);
            }
        }
    }

    /// A text or an identifier whose opening quote stands at `open`.
    fn quoted(
        &mut self,
        open: usize,
        quote: u8,
        params: Option<Quoting>,
        what: &str,
    ) -> Result<(), Malformed> {
        self.at = open;
        self.end_code();
        let mut start = open;
        self.at = open + 1;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.fault(open, &format!("this {what} is not closed"))),
                Some(b'\\') if params == Some(Quoting::EscapeText) => {
                    self.at += 1;
                    self.at += self.sql[self.at..].chars().next().map_or(0, char::len_utf8);
                }
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    if self.bytes.get(self.at) == Some(&quote) {
                        self.at += 1;
                    } else if params == Some(Quoting::EscapeText) {
                        match self.continued()? {
                            Some(next) => self.at = next,
                            None => break,
                        }
                    } else {
                        break;
                    }
                }
                Some(b'$') if params.is_some() => {
                    let len = name_len(&self.bytes[self.at + 1..]);
                    if len > 0 {
                        self.push(start, Piece::Quoted);
                        let name = &self.sql[self.at + 1..self.at + 1 + len];
                        self.pieces.push(Piece::Param(name, params.unwrap_or(Quoting::Text)));
                        start = self.at + 1 + len;
                    }
                    self.at += 1 + len;
                }
                Some(_) => self.at += 1,
            }
        }
        self.push(start, Piece::Quoted);
        Ok(())
    }

    /// A text goes on in the next quotes if a line break stands between; in DuckDB the second part
    /// is then read as the first was, with backslashes. Gives where the second part's characters start.
    fn continued(&self) -> Result<Option<usize>, Malformed> {
        let mut at = self.at;
        let mut broken = false;
        loop {
            match self.bytes.get(at) {
                Some(b'\n' | b'\r') => {
                    broken = true;
                    at += 1;
                }
                Some(b' ' | b'\t' | 0x0C) => at += 1,
                Some(b'-') if self.bytes.get(at + 1) == Some(&b'-') => at = self.line_end(at),
                Some(b'\'') if broken => return Ok(Some(at + 1)),
                // Whether the engine takes this one for a blank here is not worth guessing.
                Some(_) if self.unicode_blank(at) > 0 => {
                    return Err(self.fault(at, "write an ordinary blank after `E'…'`"));
                }
                _ => return Ok(None),
            }
        }
    }

    /// `[…]` of SQLite: ends at the first `]`, nothing can be doubled.
    fn bracketed(&mut self) -> Result<(), Malformed> {
        self.end_code();
        let start = self.at;
        self.at =
            self.find("]", start).ok_or_else(|| self.fault(start, "this `[` is not closed"))? + 1;
        self.push(start, Piece::Quoted);
        Ok(())
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        let end = match self.dialect {
            Dialect::Sqlite => memchr::memchr(b'\n', rest),
            Dialect::DuckDb => memchr::memchr2(b'\n', b'\r', rest),
        };
        end.map_or(self.bytes.len(), |n| from + n)
    }

    fn line_comment(&mut self) {
        self.end_code();
        let start = self.at;
        self.at = self.line_end(start);
        self.push(start, Piece::Comment);
    }

    fn block_comment(&mut self) -> Result<(), Malformed> {
        self.end_code();
        let start = self.at;
        self.at += 2;
        let mut depth = 1;
        while depth > 0 {
            match self.bytes.get(self.at..self.at + 2) {
                None => return Err(self.fault(start, "this comment is not closed")),
                Some(b"*/") => {
                    depth -= 1;
                    self.at += 2;
                }
                Some(b"/*") if self.dialect == Dialect::DuckDb => {
                    depth += 1;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
        self.push(start, Piece::Comment);
        Ok(())
    }

    /// A dollar text, a parameter, or a `$` that is left to the engine.
    fn dollar(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        if let Some(end) = self.dollar_text(start)? {
            if self.dialect == Dialect::Sqlite {
                return Err(
                    self.fault(start, "the sqlite engine has no dollar-quoted text; write `'…'`")
                );
            }
            self.end_code();
            self.at = end;
            self.push(start, Piece::Quoted);
            return Ok(());
        }
        let len = name_len(&self.bytes[start + 1..]);
        if len > 0 {
            self.end_code();
            self.pieces.push(Piece::Param(&self.sql[start + 1..start + 1 + len], Quoting::Code));
            self.at = start + 1 + len;
            self.code = self.at;
        } else {
            self.at += 1;
        }
        Ok(())
    }

    /// Where the dollar text that starts at `start` ends, if one does.
    fn dollar_text(&mut self, start: usize) -> Result<Option<usize>, Malformed> {
        let Some(open) = tag_at(self.sql, start) else { return Ok(None) };
        let from = start + open.len();
        if open == "$$" {
            let close = self.find(open, from);
            let unclosed = || self.fault(start, "this dollar-quoted text is not closed");
            return close.map(|close| Some(close + open.len())).ok_or_else(unclosed);
        }
        // Not searched for each time: a statement may be full of tags that are never closed.
        let sql = self.sql;
        let tags = self.tags.get_or_insert_with(|| last_tags(sql));
        if tags.get(open).is_none_or(|last| *last < from) {
            return Ok(None);
        }
        Ok(self.find(open, from).map(|close| close + open.len()))
    }

    fn reference(&mut self) -> Result<(), Malformed> {
        self.end_code();
        let (found, len) = refs::parse(&self.sql[self.at..])
            .map_err(|fault| self.fault(self.at + fault.at, &fault.what))?;
        self.pieces.push(Piece::Ref(found));
        self.at += len;
        self.code = self.at;
        Ok(())
    }
}

/// The `$tag$` or `$$` that starts at this place.
fn tag_at(sql: &str, start: usize) -> Option<&str> {
    let rest = &sql.as_bytes()[start + 1..];
    let tag = match rest.first() {
        Some(b) if is_name_start(*b) || *b >= 0x80 => {
            rest.iter().take_while(|b| is_name(**b) || **b >= 0x80).count()
        }
        _ => 0,
    };
    (rest.get(tag) == Some(&b'$')).then(|| &sql[start..start + tag + 2])
}

/// Where each `$tag$` of a text stands last, in whatever it stands.
fn last_tags(sql: &str) -> HashMap<&str, usize> {
    memchr::memchr_iter(b'$', sql.as_bytes())
        .filter_map(|start| Some((tag_at(sql, start)?, start)))
        .collect()
}

#[cfg(test)]
mod tests;
