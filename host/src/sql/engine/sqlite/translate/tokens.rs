//! The tokens of a statement, made of the pieces that [`split`] finds by SQLite's rules.
//!
//! Values were put into the statement by those rules. So that none becomes code by DuckDB's, a statement in which the
//! two disagree about where a text or a comment ends is not read here at all.

use super::{Result, Untranslated};
use crate::sql::lexer::{Dialect, Piece, Quoting, split};

/// Tokens of a statement that people or agents write.
const MOST: usize = 20_000;

/// One token, and where it stands in the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or keyword, as written.
    Word(String),
    /// `"…"`, without its quotes.
    Quoted(String),
    /// `'…'`, without its quotes.
    Text(String),
    Number(String),
    Operator(&'static str),
}

/// Longest first.
const OPERATORS: &[&str] = &[
    "->>", "->", "::", "||", "<=", ">=", "<>", "!=", "==", "//", ":", "(", ")", "[", "]", "{", "}",
    ",", ";", ".", "+", "-", "*", "/", "%", "<", ">", "=",
];

/// Splits a statement without references and parameters.
pub(super) fn tokens(sql: &str) -> Result<Vec<Token>> {
    let (pieces, outcome) = split(sql, Dialect::Sqlite);
    outcome.map_err(|_| Untranslated)?;
    let mut out = Tokens { all: Vec::new(), at: 0 };
    // A text so far: what looks like a parameter in it is its own.
    let mut open = String::new();
    for piece in pieces {
        match piece {
            Piece::Code(text) => out.code(text)?,
            Piece::Comment(text) => {
                // DuckDB's nest, and end a line at a carriage return.
                let nests = text.starts_with("/*") && text[2..].contains("/*");
                if nests || text.starts_with("--") && text.contains('\r') {
                    return Err(Untranslated);
                }
                out.at += text.len();
            }
            Piece::Quoted(text) if open.is_empty() && text.starts_with('[') => {
                out.push(Kind::Operator("["), 1);
                out.brackets(&text[1..text.len() - 1])?;
                out.push(Kind::Operator("]"), 1);
            }
            Piece::Quoted(text) => {
                open.push_str(text);
                // Every quote in it is doubled but for the first, and the last.
                if open.matches(&open[..1]).count().is_multiple_of(2) {
                    out.quoted(&std::mem::take(&mut open))?;
                }
            }
            Piece::Param(name, Quoting::Text | Quoting::Identifier) => {
                open.push('$');
                open.push_str(name);
            }
            Piece::Blank | Piece::Param(..) | Piece::Ref(_) => return Err(Untranslated),
        }
    }
    Ok(out.all)
}

struct Tokens {
    all: Vec<Token>,
    at: usize,
}

impl Tokens {
    fn push(&mut self, kind: Kind, len: usize) {
        self.all.push(Token { kind, start: self.at, end: self.at + len });
        self.at += len;
    }

    /// A whole text or identifier.
    fn quoted(&mut self, text: &str) -> Result<()> {
        // `E'…'`, `x'…'`: no text as it stands there.
        let touches = self.all.last().is_some_and(|last| {
            last.end == self.at
                && matches!(last.kind, Kind::Word(_) | Kind::Number(_) | Kind::Text(_))
        });
        let inner = text.get(1..text.len().saturating_sub(1)).ok_or(Untranslated)?;
        let kind = match text.as_bytes()[0] {
            b'\'' if !touches => Kind::Text(inner.replace("''", "'")),
            b'"' => Kind::Quoted(inner.replace("\"\"", "\"")),
            _ => return Err(Untranslated),
        };
        self.push(kind, text.len());
        Ok(())
    }

    /// What stands in `[…]`, an identifier to SQLite: a quote that it leaves open would close in what follows.
    fn brackets(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let next = rest.find(['\'', '"', '`', '$']).unwrap_or(rest.len());
            let code = &rest[..next];
            if code.contains("--") || code.contains("/*") {
                return Err(Untranslated);
            }
            self.code(code)?;
            rest = &rest[next..];
            let Some(quote) = rest.chars().next() else { break };
            if quote != '\'' && quote != '"' {
                return Err(Untranslated);
            }
            let mut end = 1;
            loop {
                end += rest[end..].find(quote).ok_or(Untranslated)? + 1;
                if !rest[end..].starts_with(quote) {
                    break;
                }
                end += 1;
            }
            self.quoted(&rest[..end])?;
            rest = &rest[end..];
        }
        Ok(())
    }

    /// Code without quotes and comments.
    fn code(&mut self, text: &str) -> Result<()> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
            let len = if c.is_ascii_whitespace() {
                self.at += 1;
                rest = &rest[1..];
                continue;
            } else if c.is_ascii_digit() || c == '.' && digit(&rest[1..]) {
                let len = number(rest);
                // What else may follow a number means different things.
                if rest[len..].starts_with(|c: char| is_name(c) || c == '.') {
                    return Err(Untranslated);
                }
                self.push(Kind::Number(rest[..len].to_owned()), len);
                len
            } else if is_name(c) {
                let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                if !rest[..len].is_ascii() || rest[len..].starts_with('$') {
                    return Err(Untranslated);
                }
                self.push(Kind::Word(rest[..len].to_owned()), len);
                len
            } else {
                let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
                let operator = operator.ok_or(Untranslated)?;
                self.push(Kind::Operator(operator), operator.len());
                operator.len()
            };
            if self.all.len() > MOST {
                return Err(Untranslated);
            }
            rest = &rest[len..];
        }
        Ok(())
    }
}

/// The length of the number at the start.
fn number(text: &str) -> usize {
    let digits = |from: usize| {
        text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| from + n)
    };
    let mut at = digits(0);
    if text[at..].starts_with('.') {
        at = digits(at + 1);
    }
    if text[at..].starts_with(['e', 'E']) {
        let sign = usize::from(text[at + 1..].starts_with(['+', '-']));
        let end = digits(at + 1 + sign);
        if end > at + 1 + sign {
            at = end;
        }
    }
    at
}
