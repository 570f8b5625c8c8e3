//! JSON values, as DuckDB takes them apart. Their numbers stay as they are written.

use json_text::{Json, Kind};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::lists::{count, json_at, list};
use super::{Function, refuse};

pub(super) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("_texts", 2, |c| cast(c, text_item)),
        ("_jsons", 2, |c| cast(c, rewritten)),
        ("_shaped", 2, shaped),
        ("_path", 2, |c| at_path(c, |found| Value::Text(rewritten(found)))),
        ("_path_text", 2, |c| {
            at_path(c, |found| plain_text(found).map_or(Value::Null, Value::Text))
        }),
        ("_json_type", 1, |c| Ok(json_at(c, 0)?.map_or(Value::Null, |json| type_name(json)))),
        ("_json_type", 2, |c| at_path(c, type_name)),
        ("_json_array_length", 1, array_length),
        ("_json_keys", 1, keys),
    ];
    super::register_all(connection, flags, functions)
}

/// JSON as a list.
fn cast(context: &Context<'_>, item: fn(Json<'_>) -> String) -> Result<Value> {
    let Some(json) = json_at(context, 0)? else { return Ok(Value::Null) };
    match json.kind() {
        Kind::Array => Ok(list(json.items().map(item))),
        Kind::Null => Ok(Value::Null),
        _ if matches!(context.get_raw(1), ValueRef::Integer(1)) => Ok(Value::Null),
        _ => refuse("the JSON value is no list"),
    }
}

fn text_item(item: Json<'_>) -> String {
    let mut out = String::new();
    match plain_text(item) {
        Some(text) => json_text::quote(&text, &mut out),
        None => out.push_str("null"),
    }
    out
}

/// The text that a JSON value is, or is written as.
pub(super) fn plain_text(json: Json<'_>) -> Option<String> {
    match json.kind() {
        Kind::Null => None,
        Kind::String => json.as_str().map(|text| text.into_owned()),
        _ => Some(rewritten(json)),
    }
}

/// JSON as DuckDB writes it when it was taken out of other JSON.
pub(super) fn rewritten(json: Json<'_>) -> String {
    let mut out = String::new();
    put_rewritten(json, &mut out);
    out
}

fn put_rewritten(json: Json<'_>, out: &mut String) {
    match json.kind() {
        Kind::Array => {
            out.push('[');
            for (at, item) in json.items().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                put_rewritten(item, out);
            }
            out.push(']');
        }
        Kind::Object => {
            out.push('{');
            for (at, (name, value)) in json.fields().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                json_text::quote(&name, out);
                out.push(':');
                put_rewritten(value, out);
            }
            out.push('}');
        }
        Kind::String => json_text::quote(&json.as_str().unwrap_or_default(), out),
        // A double in its shortest form.
        Kind::Number if json.text().contains(['.', 'e', 'E']) => match json.as_f64() {
            Some(number) => put_double(number, out),
            None => out.push_str(json.text()),
        },
        Kind::Null | Kind::Bool | Kind::Number => out.push_str(json.text()),
    }
}

/// A finite double as DuckDB writes it in JSON, in its shortest form.
pub(super) fn put_double(number: f64, out: &mut String) {
    if number == 0.0 || (1e-6..1e21).contains(&number.abs()) {
        let text = number.to_string();
        out.push_str(&text);
        out.push_str(if text.contains('.') { "" } else { ".0" });
    } else {
        out.push_str(&format!("{number:e}"));
    }
}

/// A member of an object: the first of this name.
pub(super) fn member<'a>(json: Json<'a>, name: &str) -> Option<Json<'a>> {
    if !json.is_object() {
        return None;
    }
    json.fields().find(|(other, _)| other == name).map(|(_, value)| value)
}

/// The members that a structure names, each as it says: an object, `"VARCHAR"` or `"JSON"`. What is missing is null.
fn shaped(context: &Context<'_>) -> Result<Value> {
    let (Some(json), Some(structure)) = (json_at(context, 0)?, json_at(context, 1)?) else {
        return Ok(Value::Null);
    };
    if !json.is_object() {
        return if json.is_null() {
            Ok(Value::Null)
        } else {
            refuse("the JSON value is no object")
        };
    }
    let mut out = String::new();
    put_shaped(Some(json), structure, &mut out)?;
    Ok(Value::Text(out))
}

fn put_shaped(json: Option<Json<'_>>, structure: Json<'_>, out: &mut String) -> Result<()> {
    let Some(json) = json.filter(|json| !json.is_null()) else {
        out.push_str("null");
        return Ok(());
    };
    if structure.eq_str("JSON") {
        out.push_str(&rewritten(json));
    } else if !structure.is_object() {
        out.push_str(&text_item(json));
    } else if json.is_object() {
        out.push('{');
        for (at, (name, of)) in structure.fields().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            json_text::quote(&name, out);
            out.push(':');
            put_shaped(member(json, &name), of, out)?;
        }
        out.push('}');
    } else {
        return refuse("a JSON value that is no object stands where one is expected");
    }
    Ok(())
}

fn type_name(json: Json<'_>) -> Value {
    let whole = !json.text().contains(['.', 'e', 'E']);
    let name = match json.kind() {
        Kind::Null => "NULL",
        Kind::Bool => "BOOLEAN",
        Kind::Number if whole && json.text().parse::<u64>().is_ok() => "UBIGINT",
        Kind::Number if whole && json.text().parse::<i64>().is_ok() => "BIGINT",
        Kind::Number => "DOUBLE",
        Kind::String => "VARCHAR",
        Kind::Array => "ARRAY",
        Kind::Object => "OBJECT",
    };
    Value::Text(name.to_owned())
}

fn array_length(context: &Context<'_>) -> Result<Value> {
    let Some(json) = json_at(context, 0)? else { return Ok(Value::Null) };
    let is_list = json.kind() == Kind::Array;
    Ok(count(if is_list { json.items().count() } else { 0 }))
}

fn keys(context: &Context<'_>) -> Result<Value> {
    let Some(json) = json_at(context, 0)? else { return Ok(Value::Null) };
    if !json.is_object() {
        return Ok(list([""; 0]));
    }
    Ok(list(json.fields().map(|(key, _)| {
        let mut out = String::new();
        json_text::quote(&key, &mut out);
        out
    })))
}

/// What stands at a path: `$.a[0]`, the name of a member, or a place counted from 0.
fn at_path(context: &Context<'_>, make: fn(Json<'_>) -> Value) -> Result<Value> {
    let Some(json) = json_at(context, 0)? else { return Ok(Value::Null) };
    let found = match context.get_raw(1) {
        ValueRef::Null => None,
        ValueRef::Integer(at) => match (json.kind(), usize::try_from(at)) {
            (Kind::Array, Ok(at)) => json.items().nth(at),
            _ => None,
        },
        ValueRef::Text(bytes) => {
            let path = std::str::from_utf8(bytes)?;
            match path.strip_prefix('$') {
                Some(steps) => match walk(json, steps) {
                    Some(found) => found,
                    None => return refuse(format!("the path `{path}` is not known here")),
                },
                None if path.starts_with('/') => {
                    return refuse("a JSON pointer is not known here; write `$.a.b`");
                }
                None if path.is_empty() => return refuse("a path must not be empty"),
                None => member(json, path),
            }
        }
        _ => return refuse("a path is a text or a number"),
    };
    Ok(found.map_or(Value::Null, make))
}

/// Follows `.name`, `."name"` and `[3]`; `None` for any other step.
fn walk<'a>(json: Json<'a>, mut steps: &str) -> Option<Option<Json<'a>>> {
    let mut at = Some(json);
    while !steps.is_empty() {
        let (next, rest) = if let Some(name) = steps.strip_prefix(".\"") {
            let (name, rest) = name.split_once('"')?;
            (at.and_then(|json| member(json, name)), rest)
        } else if let Some(name) = steps.strip_prefix('.') {
            let len = name.find(['.', '[']).unwrap_or(name.len());
            let (name, rest) = name.split_at(len);
            if name.is_empty() || name.contains(['*', '"', ']']) {
                return None;
            }
            (at.and_then(|json| member(json, name)), rest)
        } else {
            let (place, rest) = steps.strip_prefix('[')?.split_once(']')?;
            let place = place.parse::<usize>().ok()?;
            (
                at.filter(|json| json.kind() == Kind::Array)
                    .and_then(|json| json.items().nth(place)),
                rest,
            )
        };
        (at, steps) = (next, rest);
    }
    Some(at)
}
