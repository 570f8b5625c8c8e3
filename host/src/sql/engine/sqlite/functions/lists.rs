//! Lists and structs: JSON texts without blanks.

use std::collections::HashSet;

use json_text::{Json, Kind};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::json::{self, plain_text};
use super::{Function, integer, refuse, text};

/// The longest text that is made here.
const LONGEST: usize = 64 << 20;

pub(super) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("_json_of", 1, json_of),
        ("_array", -1, array),
        ("_object", -1, object),
        ("_item", 3, item),
        ("_member", 3, member),
        ("_slice", 3, slice),
        ("_sublist", 3, sublist),
        ("_length", 1, |c| with_items(c, |items| Ok(count(items.len())))),
        ("_sorted", 1, |c| with_items(c, sort)),
        ("_distinct", 1, |c| with_items(c, distinct)),
        ("_list_position", 2, position),
        ("_reversed", 1, |c| {
            with_items(c, |mut items| {
                items.reverse();
                Ok(list(items))
            })
        }),
        ("_joined", 2, joined),
        ("_list_has", 2, has),
        ("_list_text", 2, list_text),
        ("_wrapped", 1, |c| with_items(c, |items| Ok(list(items.into_iter().map(wrapped))))),
        ("_split", 2, split),
    ];
    super::register_all(connection, flags, functions)?;
    connection.create_aggregate_function("_list", 1, flags, List)
}

pub(super) fn json_at<'a>(context: &'a Context<'_>, at: usize) -> Result<Option<Json<'a>>> {
    Ok(text(context, at)?.map(Json::trusted))
}

pub(super) fn count(len: usize) -> Value {
    Value::Integer(i64::try_from(len).unwrap_or(i64::MAX))
}

pub(super) fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Value {
    let mut out = "[".to_owned();
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    Value::Text(out)
}

/// Something made of the items of a list.
fn with_items(context: &Context<'_>, make: fn(Vec<&str>) -> Result<Value>) -> Result<Value> {
    match json_at(context, 0)? {
        Some(list) => make(list.items().map(Json::text).collect()),
        None => Ok(Value::Null),
    }
}

/// A value as the JSON of it.
fn json_of(context: &Context<'_>) -> Result<Value> {
    let mut out = String::new();
    match context.get_raw(0) {
        ValueRef::Null => out.push_str("null"),
        ValueRef::Integer(number) => out.push_str(&number.to_string()),
        ValueRef::Real(number) if number.is_finite() => json::put_double(number, &mut out),
        ValueRef::Real(_) => return refuse("a number in a list or a struct is infinite"),
        ValueRef::Text(bytes) => json_text::quote(std::str::from_utf8(bytes)?, &mut out),
        ValueRef::Blob(_) => return refuse("a blob has no JSON"),
    }
    Ok(Value::Text(out))
}

/// A value out of JSON; with `raw` it stays JSON.
fn value_of(json: Json<'_>, raw: bool) -> Value {
    if raw && !json.is_null() {
        return Value::Text(json.text().to_owned());
    }
    match json.kind() {
        Kind::Null => Value::Null,
        Kind::Bool => Value::Integer(i64::from(json.as_bool().unwrap_or_default())),
        Kind::Number => match json.as_i64() {
            Some(number) if !json.text().contains(['.', 'e', 'E']) => Value::Integer(number),
            _ => json.as_f64().map_or(Value::Null, Value::Real),
        },
        Kind::String => json.as_str().map_or(Value::Null, |text| Value::Text(text.into_owned())),
        Kind::Array | Kind::Object => Value::Text(json.text().to_owned()),
    }
}

fn array(context: &Context<'_>) -> Result<Value> {
    let items = (0..context.len()).map(|at| text(context, at)).collect::<Result<Vec<_>>>()?;
    Ok(list(items.into_iter().map(|item| item.unwrap_or("null"))))
}

fn object(context: &Context<'_>) -> Result<Value> {
    let mut out = "{".to_owned();
    for at in (0..context.len()).step_by(2) {
        if at > 0 {
            out.push(',');
        }
        json_text::quote(text(context, at)?.unwrap_or_default(), &mut out);
        out.push(':');
        out.push_str(text(context, at + 1)?.unwrap_or("null"));
    }
    out.push('}');
    Ok(Value::Text(out))
}

/// A place counted from 1, or from the end if negative, as one from 0.
fn place(at: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    let at = if at < 0 { len + at } else { at - 1 };
    usize::try_from(at).ok().filter(|at| i64::try_from(*at).is_ok_and(|at| at < len))
}

fn is_raw(context: &Context<'_>) -> bool {
    matches!(context.get_raw(2), ValueRef::Integer(1))
}

fn item(context: &Context<'_>) -> Result<Value> {
    let (Some(list), Some(at)) = (json_at(context, 0)?, integer(context, 1)?) else {
        return Ok(Value::Null);
    };
    let found = match at {
        1.. => list.items().nth(usize::try_from(at - 1).unwrap_or(usize::MAX)),
        _ => {
            let items = list.items().collect::<Vec<_>>();
            place(at, items.len()).map(|at| items[at])
        }
    };
    Ok(found.map_or(Value::Null, |item| value_of(item, is_raw(context))))
}

fn member(context: &Context<'_>) -> Result<Value> {
    let (Some(object), Some(name)) = (json_at(context, 0)?, text(context, 1)?) else {
        return Ok(Value::Null);
    };
    let found = json::member(object, name);
    // Out of JSON, not out of what was made here.
    if let (ValueRef::Integer(2), Some(item)) = (context.get_raw(2), found) {
        return Ok(Value::Text(json::rewritten(item)));
    }
    Ok(found.map_or(Value::Null, |item| value_of(item, is_raw(context))))
}

/// The ends of a slice, counted from 1 and both within it, as a range from 0.
fn range(context: &Context<'_>, len: usize) -> Result<std::ops::Range<usize>> {
    let whole = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { whole + at + 1 } else { at };
    let low = integer(context, 1)?.map_or(1, from_end).max(1);
    let high = integer(context, 2)?.map_or(whole, from_end).min(whole);
    if low > high {
        return Ok(0..0);
    }
    let place = |at: i64| usize::try_from(at).unwrap_or(0);
    Ok(place(low - 1)..place(high))
}

fn slice(context: &Context<'_>) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    let range = range(context, text.chars().count())?;
    Ok(Value::Text(text.chars().skip(range.start).take(range.len()).collect()))
}

fn sublist(context: &Context<'_>) -> Result<Value> {
    let Some(of) = json_at(context, 0)? else { return Ok(Value::Null) };
    let items = of.items().map(Json::text).collect::<Vec<_>>();
    let range = range(context, items.len())?;
    Ok(list(&items[range]))
}

/// Items of a list that is sorted, or whose items are told apart: nothing interrupts that.
const MOST_ITEMS: usize = 1_000_000;

fn sort(items: Vec<&str>) -> Result<Value> {
    if items.len() > MOST_ITEMS {
        return refuse("the list is too long to be sorted here");
    }
    if items.contains(&"null") {
        return refuse("a list with a null in it is not sorted here");
    }
    let mut items = items
        .into_iter()
        .map(|item| (value_of(Json::trusted(item), false), item))
        .collect::<Vec<_>>();
    items.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
        _ => std::cmp::Ordering::Equal,
    });
    Ok(list(items.into_iter().map(|(_, item)| item)))
}

/// Without nulls and without what was there before.
fn distinct(items: Vec<&str>) -> Result<Value> {
    if items.len() > MOST_ITEMS {
        return refuse("the list is too long for its items to be told apart here");
    }
    let mut seen = HashSet::new();
    let is_new = |item: &&str| {
        let key = match value_of(Json::trusted(item), false) {
            Value::Real(number) => json_text::float_text(number),
            _ => (*item).to_owned(),
        };
        *item != "null" && seen.insert(key)
    };
    Ok(list(items.into_iter().filter(is_new)))
}

/// Where it is first, counted from 1; null for nowhere. A null is found like anything else.
fn position(context: &Context<'_>) -> Result<Value> {
    let (Some(list), Some(wanted)) = (json_at(context, 0)?, json_at(context, 1)?) else {
        return Ok(Value::Null);
    };
    let wanted = value_of(wanted, false);
    let found = list.items().position(|item| value_of(item, false) == wanted);
    Ok(found.map_or(Value::Null, |at| count(at + 1)))
}

fn joined(context: &Context<'_>) -> Result<Value> {
    let (Some(a), Some(b)) = (json_at(context, 0)?, json_at(context, 1)?) else {
        return Ok(Value::Null);
    };
    Ok(list(a.items().chain(b.items()).map(Json::text)))
}

fn has(context: &Context<'_>) -> Result<Value> {
    let (Some(list), Some(wanted)) = (json_at(context, 0)?, json_at(context, 1)?) else {
        return Ok(Value::Null);
    };
    if wanted.is_null() {
        return Ok(Value::Null);
    }
    let wanted = value_of(wanted, false);
    Ok(Value::Integer(i64::from(list.items().any(|item| value_of(item, false) == wanted))))
}

fn list_text(context: &Context<'_>) -> Result<Value> {
    let (Some(list), Some(separator)) = (json_at(context, 0)?, text(context, 1)?) else {
        return Ok(Value::Null);
    };
    let texts = list.items().filter_map(plain_text).collect::<Vec<_>>();
    if texts.is_empty() && list.items().next().is_some() {
        return Ok(Value::Null);
    }
    if texts.len().saturating_mul(separator.len()) > LONGEST {
        return refuse("the value would be too large");
    }
    Ok(Value::Text(texts.join(separator)))
}

/// JSON in a JSON text, for SQLite to hand on unread.
fn wrapped(item: &str) -> String {
    let mut out = String::new();
    if item == "null" {
        out.push_str(item);
    } else {
        json_text::quote(item, &mut out);
    }
    out
}

fn split(context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(separator)) = (text(context, 0)?, text(context, 1)?) else {
        return Ok(Value::Null);
    };
    if separator.is_empty() {
        return refuse("the separator must not be empty");
    }
    let quoted = text.split(separator).map(|part| {
        let mut out = String::new();
        json_text::quote(part, &mut out);
        out
    });
    Ok(list(quoted))
}

/// JSON values as a list; null of no rows.
struct List;

impl Aggregate<Option<String>, Option<String>> for List {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<String>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, so_far: &mut Option<String>) -> Result<()> {
        let item = text(context, 0)?.unwrap_or("null");
        match so_far {
            Some(list) if list.len() + item.len() > LONGEST => {
                return refuse("the list would be too large");
            }
            Some(list) => {
                list.push(',');
                list.push_str(item);
            }
            None => *so_far = Some(format!("[{item}")),
        }
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        list: Option<Option<String>>,
    ) -> Result<Option<String>> {
        Ok(list.flatten().map(|list| list + "]"))
    }
}
