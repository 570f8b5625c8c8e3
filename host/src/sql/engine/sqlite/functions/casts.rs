//! Values of one type from those of another, as DuckDB makes them. A form that it may read and that is not known here is
//! an error even where `TRY_CAST` would give null.

use json_text::Specials;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::times::Time;
use super::{Function, refuse, text};
use crate::sql::table::compact;

pub(super) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("_integer", 3, integer),
        ("_double", 2, double),
        ("_boolean", 2, boolean),
        ("_date", 2, |c| time(c, "DATE", Time::date_text)),
        ("_timestamp", 2, |c| time(c, "TIMESTAMP", Time::text)),
        ("_json", 2, json),
        ("_text_of_double", 1, text_of_double),
        ("_lower", 1, |c| changed(c, lower)),
        ("_upper", 1, |c| changed(c, upper)),
        ("_quotient", 2, quotient),
        ("_floor", 1, |c| rounded(c, f64::floor)),
        ("_ceil", 1, |c| rounded(c, f64::ceil)),
        ("_trunc", 1, |c| rounded(c, f64::trunc)),
    ];
    super::register_all(connection, flags, functions)
}

/// What becomes of a text that is no value of the type.
fn invalid(text: &str, of: &str, tries: bool) -> Result<Value> {
    if tries {
        return Ok(Value::Null);
    }
    refuse(format!("the text `{}` is no {of}", text.chars().take(60).collect::<String>()))
}

fn unknown(text: &str, of: &str) -> Result<Value> {
    refuse(format!(
        "the sqlite engine does not read the text `{}` as a {of}",
        text.chars().take(60).collect::<String>()
    ))
}

/// Whether the last argument says that what fails is null.
fn tries(context: &Context<'_>) -> bool {
    matches!(context.get_raw(context.len() - 1), ValueRef::Integer(1))
}

fn integer(context: &Context<'_>) -> Result<Value> {
    let tries = tries(context);
    let bits = context.get::<u32>(1)?;
    let number = match context.get_raw(0) {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Integer(number) => Some(number),
        #[expect(clippy::cast_possible_truncation, reason = "it was compared with the limits")]
        ValueRef::Real(number) => {
            // 2⁶³ is the first double that does not fit.
            let limit = 9_223_372_036_854_775_808.0;
            let rounded = number.round_ties_even();
            (-limit..limit).contains(&rounded).then_some(rounded as i64)
        }
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes)?;
            let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
            let digits = trimmed.trim_start_matches(['-', '+']);
            if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return invalid(text, "integer", tries);
            }
            if trimmed.len() > digits.len() + 1 || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return unknown(text, "integer");
            }
            trimmed.parse().ok()
        }
        ValueRef::Blob(_) => None,
    };
    let limit = 1_i64.checked_shl(bits - 1).filter(|_| bits < 64);
    match number.filter(|number| limit.is_none_or(|limit| (-limit..limit).contains(number))) {
        Some(number) => Ok(Value::Integer(number)),
        None if tries => Ok(Value::Null),
        None => refuse(format!("the value does not fit an integer of {bits} bits")),
    }
}

fn double(context: &Context<'_>) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let plain =
        trimmed.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'e' | b'E'));
    match trimmed.parse::<f64>() {
        Ok(number) if plain && number.is_finite() => Ok(Value::Real(number)),
        Ok(_) => unknown(text, "double"),
        Err(_)
            if trimmed
                .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-')) =>
        {
            unknown(text, "double")
        }
        Err(_) => invalid(text, "double", tries(context)),
    }
}

fn boolean(context: &Context<'_>) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => Ok(Value::Integer(1)),
        "false" | "f" | "0" => Ok(Value::Integer(0)),
        _ => unknown(text, "boolean"),
    }
}

fn time(context: &Context<'_>, of: &str, write: fn(&Time) -> String) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    match Time::read(trimmed) {
        Some(time) => Ok(Value::Text(write(&time))),
        None if trimmed.starts_with(|c: char| c.is_ascii_digit()) => unknown(text, of),
        None if trimmed.chars().all(|c| c.is_ascii_alphabetic()) && !trimmed.is_empty() => {
            // `epoch`, `infinity` …
            match trimmed.to_ascii_lowercase().as_str() {
                "epoch" | "infinity" | "inf" | "now" | "today" => unknown(text, of),
                _ => invalid(text, of, tries(context)),
            }
        }
        None => invalid(text, of, tries(context)),
    }
}

fn json(context: &Context<'_>) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    if json_text::check(text, Specials::Refuse).is_err() {
        return invalid(text, "JSON", tries(context));
    }
    Ok(Value::Text(compact(text).into_owned()))
}

fn text_of_double(context: &Context<'_>) -> Result<Value> {
    Ok(match context.get_raw(0) {
        ValueRef::Real(number) => Value::Text(json_text::float_text(number)),
        _ => Value::Null,
    })
}

/// Division of numbers, never of whole ones alone.
#[expect(clippy::cast_precision_loss, reason = "as DuckDB divides integers")]
fn quotient(context: &Context<'_>) -> Result<Value> {
    let number = |at: usize| match context.get_raw(at) {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    };
    Ok(match (number(0), number(1)) {
        (Some(_), Some(0.0)) | (None, _) | (_, None) => Value::Null,
        (Some(a), Some(b)) => Value::Real(a / b),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a double is what DuckDB gives")]
fn rounded(context: &Context<'_>, round: fn(f64) -> f64) -> Result<Value> {
    Ok(match context.get_raw(0) {
        ValueRef::Integer(number) => Value::Real(number as f64),
        ValueRef::Real(number) => Value::Real(round(number)),
        _ => Value::Null,
    })
}

fn changed(context: &Context<'_>, change: fn(char) -> char) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    Ok(Value::Text(text.chars().map(change).collect()))
}

/// One character for one, as DuckDB changes case.
pub(super) fn lower(c: char) -> char {
    match c {
        'İ' => 'i',
        _ => one(c.to_lowercase(), c),
    }
}

fn upper(c: char) -> char {
    match c {
        'ß' => 'ẞ',
        // With an iota below: one character where the whole mapping has two.
        'ᾀ'..='ᾯ' => char::from_u32(u32::from(c) | 8).unwrap_or(c),
        'ᾳ' | 'ῃ' | 'ῳ' => char::from_u32(u32::from(c) + 9).unwrap_or(c),
        _ => one(c.to_uppercase(), c),
    }
}

fn one(mut changed: impl Iterator<Item = char>, same: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(c), None) => c,
        _ => same,
    }
}
