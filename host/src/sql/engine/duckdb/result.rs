//! How a result is read: through a statement around the user's, which turns every column into text by its type, so that
//! numbers stay exact and JSON stays JSON. Where all are texts there is none.

use json_text::Specials;

use super::ffi::{ReadType, ResultColumn};
use crate::sql::lexer::{Dialect, Piece, split};
use crate::sql::table::compact;

/// The statement around the user's: every column as text, by its type and its place.
pub(super) fn around(sql: &str, columns: &[ResultColumn]) -> String {
    let mut out = "SELECT ".to_owned();
    let mut names = String::new();
    for (at, ResultColumn { read, .. }) in columns.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        match read {
            ReadType::Nested => out.push_str(&format!("{comma}CAST(to_json(c{at}) AS VARCHAR)")),
            _ => out.push_str(&format!("{comma}CAST(c{at} AS VARCHAR)")),
        }
        names.push_str(&format!("{comma}c{at}"));
    }
    // The line break ends a comment that the statement may end with.
    out.push_str(&format!(" FROM (\n{}\n) AS rows_of_statement({names})", without_end(sql)));
    out
}

/// The statement without the semicolons at its end; what follows them is blanks and comments.
fn without_end(sql: &str) -> String {
    let pieces = split(sql, Dialect::DuckDb).0;
    let text = |piece: &Piece<'_>| match piece {
        Piece::Code(text) | Piece::Quoted(text) | Piece::Comment(text) => (*text).to_owned(),
        Piece::Blank => " ".to_owned(),
        // There are none in a statement that is run.
        Piece::Param(name, _) => format!("${name}"),
        Piece::Ref(_) => String::new(),
    };
    let mut kept = pieces.iter().map(text).collect::<Vec<_>>();
    for (piece, text) in pieces.iter().zip(&mut kept).rev() {
        match piece {
            Piece::Code(code) => {
                let end = code.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace());
                *text = end.to_owned();
                if !end.is_empty() {
                    break;
                }
            }
            Piece::Comment(_) | Piece::Blank => text.push('\n'),
            Piece::Quoted(_) | Piece::Param(..) | Piece::Ref(_) => break,
        }
    }
    kept.concat()
}

pub(super) fn has_semicolon(sql: &str) -> bool {
    split(sql, Dialect::DuckDb)
        .0
        .iter()
        .any(|piece| matches!(piece, Piece::Code(text) if text.contains(';')))
}

/// Appends a cell as JSON.
pub(super) fn write(text: Option<&str>, read: ReadType, out: &mut String) {
    let Some(text) = text else { return out.push_str("null") };
    match read {
        ReadType::Boolean => out.push_str(text),
        // DuckDB writes `nan` and `inf` where JSON has no number.
        ReadType::Number
            if text
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')) =>
        {
            let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
            // A DECIMAL without digits before its point is written without the zero that JSON wants.
            let zero = if digits.starts_with('.') { "0" } else { "" };
            out.extend([sign, zero, digits]);
        }
        ReadType::Number => out.push_str("null"),
        ReadType::Json | ReadType::Nested => match json(text) {
            Some(json) => out.push_str(&json),
            None => json_text::quote(text, out),
        },
        ReadType::Text => json_text::quote(text, out),
    }
}

/// A JSON text as it can be sent; `None` if it is none.
fn json(text: &str) -> Option<String> {
    if json_text::check(text, Specials::Refuse).is_ok() {
        return Some(compact(text).into_owned());
    }
    // A number beyond a double is kept as it is (S16); those without JSON form are gone.
    let standard = with_nulls(text);
    json_text::check(&standard, Specials::Accept).is_ok().then(|| compact(&standard).into_owned())
}

/// The text with the numbers that DuckDB's JSON writes and JSON lacks (`nan`, `inf`, `-inf`) as null.
fn with_nulls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_alphabetic()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = if rest.starts_with('"') {
            let mut escaped = false;
            let end = rest.bytes().skip(1).position(|b| {
                let ends = b == b'"' && !escaped;
                escaped = b == b'\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |n| n + 2)
        } else {
            rest.bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'+'))
                .count()
        };
        let token = &rest[..len];
        let special = ["nan", "inf", "-inf", "infinity", "-infinity", "-nan"];
        out.push_str(if special.iter().any(|s| token.eq_ignore_ascii_case(s)) {
            "null"
        } else {
            token
        });
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}
