//! `LIKE` and `GLOB`, as SQLite has them, in steps between which the clock is looked at: SQLite's own take a pattern's
//! length times a text's, and nothing interrupts a function.

use std::time::Instant;

use rusqlite::ffi::{self, ErrorCode};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

use super::casts::lower;
use super::{any_text, refuse};

/// Bytes of a pattern, as SQLite limits them.
const LONGEST_PATTERN: usize = 50_000;

/// Steps between two looks at the clock.
const STEPS_BETWEEN_CHECKS: u32 = 1 << 16;

/// Makes both known; a match that is not decided at the deadline interrupts the statement.
pub(super) fn register(
    connection: &Connection,
    flags: FunctionFlags,
    deadline: Instant,
) -> Result<()> {
    for (name, count, dialect) in [("like", 2, LIKE), ("like", 3, LIKE), ("glob", 2, GLOB)] {
        connection.create_scalar_function(name, count, flags, move |context| {
            matched(context, dialect, deadline)
        })?;
    }
    Ok(())
}

/// Makes DuckDB's `LIKE` and `ILIKE` known: `_like(text, pattern, any_case)`.
pub(super) fn register_translated(
    connection: &Connection,
    flags: FunctionFlags,
    deadline: Instant,
) -> Result<()> {
    connection.create_scalar_function("_like", 3, flags, move |context| {
        let any_case = matches!(context.get_raw(2), ValueRef::Integer(1));
        let cased = |text: &str| match any_case {
            true => text.chars().map(lower).collect::<String>(),
            false => text.to_owned(),
        };
        let pattern = context.get_or_create_aux(1, |value| -> Result<_> {
            Ok(any_text(value).map(|text| Pattern::new(&cased(&text), CASED, None)))
        })?;
        let (Some(pattern), Some(text)) = (&*pattern, any_text(context.get_raw(0))) else {
            return Ok(Value::Null);
        };
        decided(pattern, &cased(&text), deadline)
    })
}

/// What stands for what in a pattern.
#[derive(Debug, Clone, Copy)]
struct Wildcards {
    any: char,
    one: char,
    sets: bool,
    fold: bool,
}

const LIKE: Wildcards = Wildcards { any: '%', one: '_', sets: false, fold: true };
/// DuckDB's.
const CASED: Wildcards = Wildcards { any: '%', one: '_', sets: false, fold: false };
const GLOB: Wildcards = Wildcards { any: '*', one: '?', sets: true, fold: false };

/// `like(pattern, text[, escape])`: a pattern that is the same for all rows is read once.
fn matched(context: &Context<'_>, dialect: Wildcards, deadline: Instant) -> Result<Value> {
    let escape = if context.len() == 3 {
        let Some(text) = any_text(context.get_raw(2)) else { return Ok(Value::Null) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(escape), None) => Some(escape),
            _ => return refuse("ESCAPE expression must be a single character"),
        }
    } else {
        None
    };
    let pattern = |value: ValueRef<'_>| -> Result<Option<Pattern>> {
        let Some(text) = any_text(value) else { return Ok(None) };
        if text.len() > LONGEST_PATTERN {
            return refuse("LIKE or GLOB pattern too complex");
        }
        Ok(Some(Pattern::new(&text, dialect, escape)))
    };
    let own;
    let shared;
    let pattern = if escape.is_some() {
        own = pattern(context.get_raw(0))?;
        &own
    } else {
        shared = context.get_or_create_aux(0, |value| -> Result<_> { pattern(value) })?;
        &*shared
    };
    let (Some(pattern), Some(text)) = (pattern, any_text(context.get_raw(1))) else {
        return Ok(Value::Null);
    };
    decided(pattern, &text, deadline)
}

/// Whether the text fits; not decided at the deadline, it interrupts the statement.
fn decided(pattern: &Pattern, text: &str, deadline: Instant) -> Result<Value> {
    let mut steps = 0_u32;
    let in_time = || {
        steps = steps.wrapping_add(1);
        !steps.is_multiple_of(STEPS_BETWEEN_CHECKS) || Instant::now() < deadline
    };
    match pattern.fits(text, in_time) {
        Some(fits) => Ok(Value::Integer(i64::from(fits))),
        None => Err(interrupted()),
    }
}

/// What a function says that has not finished at the deadline.
pub(super) fn interrupted() -> Error {
    let code = ErrorCode::OperationInterrupted;
    Error::SqliteFailure(ffi::Error { code, extended_code: ffi::SQLITE_INTERRUPT }, None)
}

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Any number of characters.
    Any,
    /// One character, whichever.
    One,
    /// This character.
    Is(char),
    /// A character of these ranges, or with `false` of none of them.
    Of(Vec<(char, char)>, bool),
    /// What nothing fits: an escape or a set that does not end.
    Never,
}

/// A pattern, read.
#[derive(Debug)]
struct Pattern {
    pieces: Vec<Piece>,
    fold: bool,
}

impl Pattern {
    fn new(text: &str, dialect: Wildcards, escape: Option<char>) -> Self {
        let mut pieces = Vec::new();
        let mut chars = until_nul(text).chars();
        while let Some(c) = chars.next() {
            pieces.push(if Some(c) == escape {
                chars.next().map_or(Piece::Never, Piece::Is)
            } else if c == dialect.any {
                if pieces.last() == Some(&Piece::Any) {
                    continue;
                }
                Piece::Any
            } else if c == dialect.one {
                Piece::One
            } else if c == '[' && dialect.sets {
                set(&mut chars)
            } else {
                Piece::Is(c)
            });
        }
        Self { pieces, fold: dialect.fold }
    }

    /// Whether the text fits; `None` when `in_time` no longer holds. Only the last [`Piece::Any`] is ever tried again,
    /// one character further on: what is before it has all it needs.
    fn fits(&self, text: &str, mut in_time: impl FnMut() -> bool) -> Option<bool> {
        let text = until_nul(text);
        let (mut piece, mut at) = (0, 0);
        let mut again: Option<(usize, usize)> = None;
        loop {
            if !in_time() {
                return None;
            }
            let next = text[at..].chars().next();
            match (self.pieces.get(piece), next) {
                (None, None) => return Some(true),
                (Some(Piece::Any), _) => {
                    piece += 1;
                    if piece == self.pieces.len() {
                        return Some(true);
                    }
                    let Some(found) = self.skip(piece, text, at) else { return Some(false) };
                    at = found;
                    again = Some((piece, at));
                    continue;
                }
                (Some(wanted), Some(c)) if self.takes(wanted, c) => {
                    piece += 1;
                    at += c.len_utf8();
                    continue;
                }
                _ => {}
            }
            // Without characters left, or without an `Any` before it, nothing else can be tried.
            let Some((from, tried)) = again.filter(|_| next.is_some()) else { return Some(false) };
            let step = text[tried..].chars().next().map_or(1, char::len_utf8);
            let Some(found) = self.skip(from, text, tried + step) else { return Some(false) };
            (piece, at) = (from, found);
            again = Some((from, found));
        }
    }

    /// The next place from `at` on where the piece may fit.
    fn skip(&self, piece: usize, text: &str, at: usize) -> Option<usize> {
        let Some(Piece::Is(c)) = self.pieces.get(piece) else { return Some(at) };
        let rest = text.as_bytes().get(at..)?;
        let mut first = [0; 4];
        let first = c.encode_utf8(&mut first).as_bytes()[0];
        let found = if self.fold && c.is_ascii_alphabetic() {
            memchr::memchr2(first.to_ascii_lowercase(), first.to_ascii_uppercase(), rest)
        } else {
            memchr::memchr(first, rest)
        };
        found.map(|found| at + found)
    }

    fn takes(&self, piece: &Piece, c: char) -> bool {
        match piece {
            Piece::One => true,
            Piece::Is(wanted) => *wanted == c || (self.fold && wanted.eq_ignore_ascii_case(&c)),
            Piece::Of(ranges, inside) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) == *inside
            }
            Piece::Any | Piece::Never => false,
        }
    }
}

/// What follows `[`: characters and ranges up to `]`, which is one of them when it comes first; `^` turns it around.
fn set(chars: &mut std::str::Chars<'_>) -> Piece {
    let mut ranges = Vec::new();
    let mut next = chars.next();
    let inside = next != Some('^');
    if !inside {
        next = chars.next();
    }
    if next == Some(']') {
        ranges.push((']', ']'));
        next = chars.next();
    }
    let mut before = None;
    loop {
        let ahead = chars.clone().next();
        match (next, before, ahead) {
            (None, ..) => return Piece::Never,
            (Some(']'), ..) => return Piece::Of(ranges, inside),
            (Some('-'), Some(from), Some(to)) if to != ']' => {
                ranges.push((from, to));
                chars.next();
                before = None;
            }
            (Some(c), ..) => {
                ranges.push((c, c));
                before = Some(c);
            }
        }
        next = chars.next();
    }
}

/// SQLite's texts end at a NUL here.
fn until_nul(text: &str) -> &str {
    text.find('\0').map_or(text, |at| &text[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(sql: &str, arguments: [&str; 2]) -> (Option<i64>, Option<i64>) {
        let theirs = Connection::open_in_memory().unwrap();
        let ours = Connection::open_in_memory().unwrap();
        let long = Instant::now() + std::time::Duration::from_secs(600);
        register(&ours, FunctionFlags::SQLITE_UTF8, long).unwrap();
        let ask = |connection: &Connection| {
            connection.query_row(sql, arguments, |row| row.get(0)).unwrap()
        };
        (ask(&theirs), ask(&ours))
    }

    proptest! {
        #[test]
        fn equal_to_sqlite(
            text in "[abAB%_é\\]\\[^*?x-]{0,9}",
            pattern in "[abAB%_é\\]\\[^*?x-]{0,7}",
        ) {
            for sql in [
                "SELECT ?1 LIKE ?2",
                "SELECT ?1 LIKE ?2 ESCAPE 'x'",
                "SELECT ?1 LIKE ?2 ESCAPE '%'",
                "SELECT ?1 LIKE ?2 ESCAPE '_'",
                "SELECT ?1 GLOB ?2",
            ] {
                let (theirs, ours) = both(sql, [&text, &pattern]);
                prop_assert_eq!(theirs, ours, "{} with {:?} and {:?}", sql, text, pattern);
            }
        }
    }

    #[test]
    fn what_is_no_text_is_taken_as_sqlite_takes_it() {
        for sql in [
            "SELECT 12 LIKE '1%' AND length(?1) + length(?2)",
            "SELECT 1.5 LIKE '1.5' AND length(?1) + length(?2)",
            "SELECT NULL LIKE ?1 OR NULL LIKE ?2",
            "SELECT x'61' LIKE 'A' AND length(?1) + length(?2)",
            "SELECT ?1 || char(0) || 'z' LIKE '_' AND length(?2)",
        ] {
            let (theirs, ours) = both(sql, ["a", "b"]);
            assert_eq!(theirs, ours, "{sql}");
        }
    }

    #[test]
    fn a_match_that_takes_too_long_interrupts() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection, FunctionFlags::SQLITE_UTF8, Instant::now()).unwrap();
        let text = "a".repeat(200_000);
        let pattern = format!("%{}b%", "a".repeat(1_500));
        let asked: Result<bool> =
            connection.query_row("SELECT ?1 LIKE ?2", [&text, &pattern], |row| row.get(0));
        let error = asked.unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted), "{error}");
    }
}
