//! What means something to DuckDB and, silently, something else to SQLite.

use super::tokens::{Kind, tokens};

/// Types that SQLite has not: it would make a number of the text, such as the year of a date.
const TIMES: &[&str] = &["date", "time", "timestamp", "datetime", "timestamptz", "interval"];

/// Joins that SQLite has not: it would take the first word for the name of the table before it.
const JOINS: &[&str] = &["semi", "anti", "asof", "positional"];

/// What of the statement SQLite would misread.
pub(in super::super) fn mistaken(sql: &str) -> Option<&'static str> {
    // What cannot be split into tokens cannot be translated either.
    let tokens = tokens(sql).ok()?;
    let word = |at: usize, words: &[&str]| match tokens.get(at).map(|token| &token.kind) {
        Some(Kind::Word(word)) => words.iter().any(|other| word.eq_ignore_ascii_case(other)),
        _ => false,
    };
    let operator = |at: usize, wanted: &str| matches!(tokens.get(at).map(|token| &token.kind), Some(Kind::Operator(found)) if *found == wanted);
    // Whether each open parenthesis is that of a CAST.
    let mut casts = Vec::new();
    for at in 0..tokens.len() {
        if operator(at, "(") {
            casts.push(at > 0 && word(at - 1, &["cast", "try_cast"]));
        } else if operator(at, ")") {
            casts.pop();
        } else if casts.last() == Some(&true)
            && word(at, &["as"])
            && word(at + 1, TIMES)
            && operator(at + 2, ")")
        {
            return Some("CAST to a date or time");
        } else if word(at, JOINS) && word(at + 1, &["join"]) {
            return Some("SEMI, ANTI, ASOF and POSITIONAL JOIN");
        } else if operator(at, "[")
            && at > 0
            && tokens[at - 1].end == tokens[at].start
            // What stands after a point or an operator is a name to SQLite, and nothing to DuckDB.
            && !matches!(tokens[at - 1].kind, Kind::Operator(before) if before != ")" && before != "]")
            && is_place(at, &tokens)
        {
            return Some("`x[1]` and `x[1:2]`");
        }
    }
    None
}

/// Whether the brackets hold numbers, as those of an item or a slice do and a name does not.
fn is_place(open: usize, tokens: &[super::tokens::Token]) -> bool {
    let inside = tokens[open + 1..].iter().take_while(|token| token.kind != Kind::Operator("]"));
    let mut some = false;
    for token in inside {
        some = true;
        if !matches!(token.kind, Kind::Number(_) | Kind::Operator(":" | "-")) {
            return false;
        }
    }
    some
}
