//! Values of one type from those of another, as DuckDB makes them. A form that it may read and that is not known here is
//! an error even where `TRY_CAST` would give null.

use json_text::Specials;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::times::Time;
use super::{Function, refuse, text};

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
        ("_plus", 2, |c| calculated(c, i64::checked_add, |a, b| a + b)),
        ("_minus", 2, |c| calculated(c, i64::checked_sub, |a, b| a - b)),
        ("_times", 2, |c| calculated(c, i64::checked_mul, |a, b| a * b)),
        ("_whole_quotient", 2, |c| divided(c, i64::checked_div)),
        ("_remainder", 2, |c| divided(c, i64::checked_rem)),
        ("_quotient", 2, quotient),
        ("_round", 1, |c| rounded(c, f64::round)),
        ("_round", 2, rounded_to),
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
        // After a minus, a year before ours or `infinity`.
        None if trimmed.starts_with(|c: char| c.is_ascii_digit() || c == '-') => unknown(text, of),
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
    Ok(Value::Text(text.to_owned()))
}

fn text_of_double(context: &Context<'_>) -> Result<Value> {
    Ok(match context.get_raw(0) {
        ValueRef::Real(number) if number.is_infinite() => {
            Value::Text(if number > 0.0 { "inf" } else { "-inf" }.to_owned())
        }
        ValueRef::Real(number) => Value::Text(json_text::float_text(number)),
        _ => Value::Null,
    })
}

/// A number as a double; `None` for null.
#[expect(clippy::cast_precision_loss, reason = "as DuckDB widens integers")]
fn number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    }
}

/// A double. SQLite would make null of one that is no number, which is another value to DuckDB.
fn real(number: f64) -> Result<Value> {
    if number.is_nan() {
        refuse("the result of a calculation is no number (NaN), which the sqlite engine has not")
    } else {
        Ok(Value::Real(number))
    }
}

/// A calculation with two integers, or with doubles. SQLite would make a double of an integer that does not fit.
fn calculated(
    context: &Context<'_>,
    whole: fn(i64, i64) -> Option<i64>,
    double: fn(f64, f64) -> f64,
) -> Result<Value> {
    match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Integer(a), ValueRef::Integer(b)) => match whole(a, b) {
            Some(number) => Ok(Value::Integer(number)),
            None => refuse("the result of a calculation does not fit an integer of 64 bits"),
        },
        (a, b) => match (number(a), number(b)) {
            (Some(a), Some(b)) => real(double(a, b)),
            _ => Ok(Value::Null),
        },
    }
}

/// A division of integers; null by zero.
fn divided(context: &Context<'_>, divide: fn(i64, i64) -> Option<i64>) -> Result<Value> {
    match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Integer(_), ValueRef::Integer(0)) => Ok(Value::Null),
        (ValueRef::Integer(a), ValueRef::Integer(b)) => match divide(a, b) {
            Some(number) => Ok(Value::Integer(number)),
            None => refuse("the result of a division does not fit an integer of 64 bits"),
        },
        _ => Ok(Value::Null),
    }
}

/// Division of numbers, never of whole ones alone: infinite by zero.
fn quotient(context: &Context<'_>) -> Result<Value> {
    match (number(context.get_raw(0)), number(context.get_raw(1))) {
        (Some(a), Some(b)) => real(a / b),
        _ => Ok(Value::Null),
    }
}

/// To so many decimal places, to the left of the point if negative: what is half goes away from zero, of the double that
/// it is after it was shifted.
fn rounded_to(context: &Context<'_>) -> Result<Value> {
    let (Some(value), Some(places)) = (number(context.get_raw(0)), number(context.get_raw(1)))
    else {
        return Ok(Value::Null);
    };
    let shift = 10_f64.powf(places.abs());
    let (rounded, beyond) = if places < 0.0 {
        ((value / shift).round() * shift, 0.0)
    } else {
        ((value * shift).round() / shift, value)
    };
    real(if rounded.is_finite() { rounded } else { beyond })
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
