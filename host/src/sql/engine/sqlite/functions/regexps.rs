//! `regexp_matches`, `regexp_extract`, `regexp_replace`, with the patterns of RE2, as DuckDB has them.

use std::sync::Arc;
use std::time::Instant;

use regex::{Captures, Regex, RegexBuilder};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::patterns::interrupted;
use super::{Function, integer, refuse, text};

/// The longest text that is made here.
const LONGEST: usize = 64 << 20;

/// Makes them known; what is not replaced at the deadline interrupts the statement.
pub(super) fn register(
    connection: &Connection,
    flags: FunctionFlags,
    deadline: Instant,
) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("regexp_matches", 2, |c| matches(c, false)),
        ("regexp_full_match", 2, |c| matches(c, true)),
        ("regexp_extract", 2, extract),
        ("regexp_extract", 3, extract),
    ];
    for count in [3, 4] {
        connection.create_scalar_function("regexp_replace", count, flags, move |context| {
            replace(context, deadline)
        })?;
    }
    super::register_all(connection, flags, functions)
}

/// Bytes that a pattern may take once it is read: the first that is tried, each time the double, and the most.
const FIRST_SIZE: usize = 4 << 10;
const MOST_SIZE: usize = 16 << 20;

/// Bytes of a pattern times those of a text: to look for the one in the other takes that many steps at worst, some
/// thousand millions a second, and nothing interrupts it.
const MOST_STEPS: usize = 1 << 39;

/// A pattern, and about how large it is.
struct Pattern {
    regex: Regex,
    size: usize,
}

impl Pattern {
    fn read(pattern: &str, any_case: bool) -> std::result::Result<Self, regex::Error> {
        let read = |size: usize| {
            let mut builder = RegexBuilder::new(pattern);
            builder.case_insensitive(any_case).size_limit(size).build()
        };
        let mut size = FIRST_SIZE;
        loop {
            match read(size) {
                Ok(regex) => return Ok(Self { regex, size }),
                Err(regex::Error::CompiledTooBig(_)) if size < MOST_SIZE => size *= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// What looks for it in this text.
    fn within(&self, text: &str) -> Result<&Regex> {
        if self.size.saturating_mul(text.len()) > MOST_STEPS {
            return refuse(format!(
                "a pattern of {} KiB, once it is read, is too large for a text of {} KiB",
                self.size >> 10,
                text.len() >> 10
            ));
        }
        Ok(&self.regex)
    }
}

/// The pattern in the second argument; one that is the same for all rows is read once.
fn pattern(context: &Context<'_>, whole: bool, any_case: bool) -> Result<Option<Arc<Pattern>>> {
    let read = |value: ValueRef<'_>| -> Result<Option<Pattern>> {
        let ValueRef::Text(bytes) = value else { return Ok(None) };
        let pattern = translated(std::str::from_utf8(bytes)?);
        let built = pattern.as_ref().map_err(|what| (*what).to_owned()).and_then(|pattern| {
            let pattern = if whole { format!(r"\A(?:{pattern})\z") } else { pattern.clone() };
            Pattern::read(&pattern, any_case).map_err(|error| {
                error.to_string().lines().last().unwrap_or("it cannot be read").trim().to_owned()
            })
        });
        match built {
            Ok(regex) => Ok(Some(regex)),
            Err(what) => refuse(format!("the pattern: {what}")),
        }
    };
    // SQLite keeps one for each place of an argument, so that options must not change it.
    if any_case {
        return Ok(read(context.get_raw(1))?.map(Arc::new));
    }
    let shared =
        context.get_or_create_aux(1, |value| read(value).map(|regex| regex.map(Arc::new)))?;
    Ok((*shared).clone())
}

/// Whether the text has a match; `None` for a pattern that is not known here.
pub(in super::super) fn matches_once(pattern: &str, text: &str) -> Option<bool> {
    let pattern = translated(pattern).ok()?;
    Some(Regex::new(&pattern).ok()?.is_match(text))
}

fn matches(context: &Context<'_>, whole: bool) -> Result<Value> {
    let (Some(text), Some(pattern)) = (text(context, 0)?, pattern(context, whole, false)?) else {
        return Ok(Value::Null);
    };
    Ok(Value::Integer(i64::from(pattern.within(text)?.is_match(text))))
}

/// A group of the first match; empty if there is none.
fn extract(context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(pattern)) = (text(context, 0)?, pattern(context, false, false)?) else {
        return Ok(Value::Null);
    };
    let pattern = pattern.within(text)?;
    let group = if context.len() > 2 { integer(context, 2)? } else { Some(0) };
    let Some(group) = group else { return Ok(Value::Null) };
    let group = usize::try_from(group).ok().filter(|group| *group < pattern.captures_len());
    let Some(group) = group else { return refuse("the pattern has no group of this number") };
    let found = pattern
        .captures(text)
        .and_then(|found| found.get(group).map(|part| part.as_str().to_owned()));
    Ok(Value::Text(found.unwrap_or_default()))
}

/// The first match replaced, or with the option `g` each.
fn replace(context: &Context<'_>, deadline: Instant) -> Result<Value> {
    let options = if context.len() > 3 { text(context, 3)? } else { Some("") };
    let Some(options) = options else { return Ok(Value::Null) };
    if !options.chars().all(|option| matches!(option, 'g' | 'i' | 'c')) {
        return refuse("the options that are known here are `g` and `i`");
    }
    let any_case = options.contains('i');
    let (Some(text), Some(pattern), Some(by)) =
        (text(context, 0)?, pattern(context, false, any_case)?, text(context, 2)?)
    else {
        return Ok(Value::Null);
    };
    let pattern = pattern.within(text)?;
    let parts = replacement(by, pattern.captures_len())?;
    let mut out = String::new();
    let mut at = 0;
    let most = if options.contains('g') { usize::MAX } else { 1 };
    for found in pattern.captures_iter(text).take(most) {
        // After each: to find one may take as long as to read all of the text.
        if Instant::now() > deadline {
            return Err(interrupted());
        }
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[at..whole.start()]);
        put(&parts, &found, &mut out);
        at = whole.end();
        if out.len() > LONGEST {
            return refuse("the value would be too large");
        }
    }
    out.push_str(&text[at..]);
    Ok(Value::Text(out))
}

/// Part of what is put in.
enum Part {
    Text(String),
    Group(usize),
}

/// `\1` stands for a group, `\\` for a backslash.
fn replacement(by: &str, groups: usize) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut chars = by.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            parts.push(Part::Text(c.to_string()));
            continue;
        }
        match chars.next().map(|c| (c, c.to_digit(10))) {
            Some(('\\', _)) => parts.push(Part::Text("\\".to_owned())),
            Some((_, Some(group))) if (group as usize) < groups => {
                parts.push(Part::Group(group as usize))
            }
            _ => {
                return refuse(
                    "the replacement has a backslash that stands for nothing known here",
                );
            }
        }
    }
    Ok(parts)
}

fn put(parts: &[Part], found: &Captures<'_>, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Group(group) => out.push_str(found.get(*group).map_or("", |part| part.as_str())),
        }
    }
}

/// A pattern of RE2 as one of ours: `\d`, `\w`, `\s`, `\b` are of ASCII there, and sets hold no sets.
fn translated(pattern: &str) -> std::result::Result<String, &'static str> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next().ok_or("it ends in a backslash")?;
                let known = match next {
                    'd' => {
                        if in_set {
                            "0-9"
                        } else {
                            "[0-9]"
                        }
                    }
                    'w' => {
                        if in_set {
                            "0-9A-Za-z_"
                        } else {
                            "[0-9A-Za-z_]"
                        }
                    }
                    's' => {
                        if in_set {
                            r"\t\n\f\r "
                        } else {
                            r"[\t\n\f\r ]"
                        }
                    }
                    'D' => "[^0-9]",
                    'W' => "[^0-9A-Za-z_]",
                    'S' => r"[^\t\n\f\r ]",
                    'b' if !in_set => r"(?-u:\b)",
                    'n' => r"\n",
                    't' => r"\t",
                    'r' => r"\r",
                    'f' => r"\f",
                    'v' => r"\v",
                    'a' => r"\a",
                    'A' if !in_set => r"\A",
                    'z' if !in_set => r"\z",
                    other if other.is_ascii_punctuation() => {
                        out.push('\\');
                        out.push(other);
                        continue;
                    }
                    _ => return Err("it has a backslash whose meaning is not known here"),
                };
                out.push_str(known);
            }
            '[' if !in_set => {
                in_set = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            '[' => {
                if chars.peek() == Some(&':') {
                    return Err("named classes such as `[:alpha:]` are not known here");
                }
                out.push_str(r"\[");
            }
            ']' if in_set => {
                in_set = false;
                out.push(']');
            }
            // Two of these side by side would be an operation on sets.
            '&' | '~' if in_set => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_set && chars.peek() == Some(&'-') => return Err("a set has `--` in it"),
            '(' if chars.peek() == Some(&'?') && !in_set => {
                out.push_str("(?");
                chars.next();
                // Flags that RE2 has not, such as `x`, and `R`.
                if !matches!(chars.peek(), Some(':' | 'P' | '<' | 'i')) {
                    return Err("it has a group that is not known here");
                }
            }
            '{' if !in_set => {
                let mut ahead = chars.clone();
                let inside = ahead.by_ref().take_while(|c| *c != '}').collect::<String>();
                let counts = inside
                    .split(',')
                    .all(|n| n.is_empty() || n.parse::<u16>().is_ok_and(|n| n <= 1000));
                if inside.starts_with(|c: char| c.is_ascii_digit())
                    && counts
                    && inside.matches(',').count() < 2
                {
                    out.push('{');
                } else {
                    out.push_str(r"\{");
                }
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is said to be known is known: nothing that is handed on is refused for what was made of it here.
        #[test]
        fn a_pattern_is_refused_for_what_it_says(pattern in "[ab^$|()?:*+.\\[\\]\\\\dwsbDWSnzA{}0-9,&~é-]{0,12}") {
            if let Ok(translated) = translated(&pattern) {
                let ours = Pattern::read(&translated, false);
                let own = Regex::new(&pattern);
                prop_assert!(ours.is_ok() || own.is_err(), "{:?} as {:?}", pattern, translated);
            }
        }
    }
}
