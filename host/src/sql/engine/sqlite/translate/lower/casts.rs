//! From one type to another.

use super::super::tree::Written;
use super::super::types::{Type, Typed};
use super::super::{Result, Untranslated};

/// As a double or a time stamp, where something of that type stands beside it.
pub(super) fn widened(typed: Typed, to: &Type) -> Typed {
    match (&typed.of, to) {
        (Type::Integer | Type::Decimal, Type::Double) => {
            Typed::new(format!("CAST({} AS REAL)", typed.sql), Type::Double)
        }
        (Type::Date, Type::Timestamp) => timestamp_of_date(&typed),
        _ => typed,
    }
}

fn timestamp_of_date(typed: &Typed) -> Typed {
    Typed::new(format!("({} || ' 00:00:00')", typed.sql), Type::Timestamp)
}

/// As a text.
pub(super) fn text(typed: Typed) -> Result<Typed> {
    let sql = typed.sql;
    let sql = match typed.of {
        Type::Text | Type::Null | Type::Date | Type::Timestamp | Type::Json => sql,
        Type::Integer => format!("CAST({sql} AS TEXT)"),
        Type::Double => format!("_text_of_double({sql})"),
        Type::Boolean => format!("CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
        Type::Decimal
        | Type::Interval
        | Type::List(_)
        | Type::Struct(_)
        | Type::Map(_)
        | Type::Unsaid => {
            return Err(Untranslated);
        }
    };
    Ok(Typed::new(sql, Type::Text))
}

/// `CAST(typed AS to)`, or with `tries` `TRY_CAST`.
pub(super) fn cast(typed: Typed, to: Written, tries: bool) -> Result<Typed> {
    let tries = u8::from(tries);
    let sql = &typed.sql;
    let (sql, of) = match (to, &typed.of) {
        (_, Type::Unsaid) => return Err(Untranslated),
        (Written::Text, _) => return text(typed),
        (Written::Integer(64), Type::Integer) => return Ok(typed),
        (
            Written::Integer(bits),
            Type::Null | Type::Integer | Type::Double | Type::Text | Type::Boolean,
        ) => (format!("_integer({sql}, {bits}, {tries})"), Type::Integer),
        (Written::Double, Type::Double) => return Ok(typed),
        (Written::Double, Type::Null | Type::Integer | Type::Decimal) => {
            (format!("CAST({sql} AS REAL)"), Type::Double)
        }
        (Written::Double, Type::Text) => (format!("_double({sql}, {tries})"), Type::Double),
        (Written::Boolean, Type::Boolean) => return Ok(typed),
        (Written::Boolean, Type::Null | Type::Integer | Type::Double) => {
            (format!("({sql} <> 0)"), Type::Boolean)
        }
        (Written::Boolean, Type::Text) => (format!("_boolean({sql}, {tries})"), Type::Boolean),
        (Written::Date, Type::Date) | (Written::Timestamp, Type::Timestamp) => return Ok(typed),
        (Written::Date, Type::Null | Type::Text) => (format!("_date({sql}, {tries})"), Type::Date),
        (Written::Date, Type::Timestamp) => (format!("substr({sql}, 1, 10)"), Type::Date),
        (Written::Timestamp, Type::Null | Type::Text) => {
            (format!("_timestamp({sql}, {tries})"), Type::Timestamp)
        }
        (Written::Timestamp, Type::Date) => return Ok(timestamp_of_date(&typed)),
        (Written::Json, Type::Json) => return Ok(typed),
        (Written::Json, Type::Text) => (format!("_json({sql}, {tries})"), Type::Json),
        (Written::Texts, Type::Json) => {
            (format!("_texts({sql}, {tries})"), Type::List(Box::new(Type::Text)))
        }
        (Written::Jsons, Type::Json) => {
            (format!("_jsons({sql}, {tries})"), Type::List(Box::new(Type::Json)))
        }
        _ => return Err(Untranslated),
    };
    Ok(Typed::new(sql, of))
}

/// Something that a JSON function takes: JSON, or a text that is parsed.
pub(super) fn as_json(typed: Typed) -> Result<Typed> {
    match typed.of {
        Type::Json | Type::Null => Ok(typed),
        Type::Text => cast(typed, Written::Json, false),
        _ => Err(Untranslated),
    }
}

/// As a JSON text.
pub(super) fn json(typed: &Typed) -> Result<String> {
    let sql = &typed.sql;
    Ok(match &typed.of {
        Type::Null => "'null'".to_owned(),
        of if of.is_json_text() => format!("coalesce({sql}, 'null')"),
        Type::Boolean => {
            format!("CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END")
        }
        Type::Text | Type::Integer | Type::Double | Type::Date | Type::Timestamp => {
            format!("_json_of({sql})")
        }
        _ => return Err(Untranslated),
    })
}
