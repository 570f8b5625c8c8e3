//! The functions a statement may call: SQLite's own but for a few, and some that users of DuckDB write.
//!
//! Ours mean exactly what they mean there, or refuse. `instr`, `replace` and the trims are SQLite's again, in time
//! linear in their arguments, and `like` and `glob` look at the clock: nothing else interrupts a function.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Instant;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

mod aggregates;
mod casts;
mod json;
mod lists;
mod patterns;
pub(super) mod regexps;
mod times;

/// A function of the values of one row.
type Function = fn(&Context<'_>) -> Result<Value>;

/// Functions that reach outside of the statement.
pub(super) fn is_denied(name: &str) -> bool {
    ["load_extension", "fts3_tokenizer", "sqlite_log", "writefile", "readfile", "edit"]
        .iter()
        .any(|other| other.eq_ignore_ascii_case(name))
}

/// Makes ours known. What can take long ends at the deadline.
pub(super) fn register(connection: &Connection, deadline: Instant) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("starts_with", 2, |c| two_texts(c, |text, part| text.starts_with(part))),
        ("prefix", 2, |c| two_texts(c, |text, part| text.starts_with(part))),
        ("ends_with", 2, |c| two_texts(c, |text, part| text.ends_with(part))),
        ("suffix", 2, |c| two_texts(c, |text, part| text.ends_with(part))),
        ("contains", 2, |c| {
            two_texts(c, |text, part| {
                memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some()
            })
        }),
        ("greatest", -1, |c| extreme(c, std::cmp::Ordering::Greater)),
        ("least", -1, |c| extreme(c, std::cmp::Ordering::Less)),
        ("lpad", 3, |c| pad(c, true)),
        ("rpad", 3, |c| pad(c, false)),
        ("repeat", 2, repeat),
        ("split_part", 3, split_part),
        ("instr", 2, instr),
        ("replace", 3, replace),
        ("trim", 2, |c| trim(c, true, true)),
        ("ltrim", 2, |c| trim(c, true, false)),
        ("rtrim", 2, |c| trim(c, false, true)),
    ];
    register_all(connection, FLAGS, functions)?;
    regexps::register(connection, FLAGS, deadline)?;
    patterns::register(connection, FLAGS, deadline)?;
    aggregates::register(connection, FLAGS)
}

/// Makes known what only a translated statement calls: no name of a function that was written starts like theirs.
pub(super) fn register_translated(connection: &Connection, deadline: Instant) -> Result<()> {
    patterns::register_translated(connection, FLAGS, deadline)?;
    aggregates::register_translated(connection, FLAGS)?;
    casts::register(connection, FLAGS)?;
    times::register(connection, FLAGS)?;
    json::register(connection, FLAGS)?;
    lists::register(connection, FLAGS)
}

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

fn register_all(
    connection: &Connection,
    flags: FunctionFlags,
    functions: &[(&str, i32, Function)],
) -> Result<()> {
    for (name, count, function) in functions {
        let function = *function;
        connection
            .create_scalar_function(*name, *count, flags, move |context| function(context))?;
    }
    Ok(())
}

/// The names of all functions.
pub(super) fn known() -> Vec<String> {
    let names = || -> Result<Vec<String>> {
        let connection = Connection::open_in_memory()?;
        register(&connection, Instant::now())?;
        let mut statement = connection.prepare(
            "SELECT DISTINCT name FROM pragma_function_list WHERE name GLOB '[a-z]*' ORDER BY name",
        )?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    names().unwrap_or_default().into_iter().filter(|name| !is_denied(name)).collect()
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::UserFunctionError(message.into().into()))
}

/// A text argument; `None` for null. Numbers are refused: DuckDB does not take them for texts either.
fn text<'a>(context: &'a Context<'_>, at: usize) -> Result<Option<&'a str>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => Ok(Some(std::str::from_utf8(bytes)?)),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
            refuse(format!("argument {} must be a text; write CAST(… AS TEXT)", at + 1))
        }
    }
}

fn integer(context: &Context<'_>, at: usize) -> Result<Option<i64>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            refuse(format!("argument {} must be an integer", at + 1))
        }
    }
}

fn two_texts(context: &Context<'_>, test: impl Fn(&str, &str) -> bool) -> Result<Value> {
    Ok(match (text(context, 0)?, text(context, 1)?) {
        (Some(text), Some(part)) => Value::Integer(i64::from(test(text, part))),
        _ => Value::Null,
    })
}

/// The greatest or least of numbers or of texts, nulls left out.
fn extreme(context: &Context<'_>, wanted: std::cmp::Ordering) -> Result<Value> {
    let mut best: Option<ValueRef<'_>> = None;
    for at in 0..context.len() {
        let value = context.get_raw(at);
        if matches!(value, ValueRef::Null) {
            continue;
        }
        let Some(so_far) = best else {
            best = Some(value);
            continue;
        };
        match compare(value, so_far) {
            Some(order) if order == wanted => best = Some(value),
            Some(_) => {}
            None => return refuse("values of one type are needed: numbers, or texts"),
        }
    }
    Ok(best.map_or(Value::Null, owned))
}

/// The order of two numbers or two texts.
fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<std::cmp::Ordering> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "an integer beside a double is compared as one, as DuckDB does"
    )]
    match (a, b) {
        (ValueRef::Integer(a), ValueRef::Integer(b)) => Some(a.cmp(&b)),
        (ValueRef::Integer(a), ValueRef::Real(b)) => (a as f64).partial_cmp(&b),
        (ValueRef::Real(a), ValueRef::Integer(b)) => a.partial_cmp(&(b as f64)),
        (ValueRef::Real(a), ValueRef::Real(b)) => a.partial_cmp(&b),
        (ValueRef::Text(a), ValueRef::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The longest text that these functions make, in characters.
const LONGEST: usize = 64 << 20;

fn pad(context: &Context<'_>, left: bool) -> Result<Value> {
    let (Some(text), Some(count), Some(filler)) =
        (text(context, 0)?, integer(context, 1)?, text(context, 2)?)
    else {
        return Ok(Value::Null);
    };
    let count = usize::try_from(count).unwrap_or(0);
    if count > LONGEST {
        return refuse("the value would be too large");
    }
    let missing = count.saturating_sub(text.chars().count());
    if missing == 0 {
        return Ok(Value::Text(text.chars().take(count).collect()));
    }
    if filler.is_empty() {
        return refuse("there is nothing to pad with");
    }
    let padding = filler.chars().cycle().take(missing).collect::<String>();
    Ok(Value::Text(if left { padding + text } else { text.to_owned() + &padding }))
}

fn repeat(context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(count)) = (text(context, 0)?, integer(context, 1)?) else {
        return Ok(Value::Null);
    };
    let count = usize::try_from(count).unwrap_or(0);
    if text.len().checked_mul(count).is_none_or(|size| size > LONGEST) {
        return refuse("the value would be too large");
    }
    Ok(Value::Text(text.repeat(count)))
}

/// The n-th part, from the end if negative; empty if there is none.
fn split_part(context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(separator), Some(at)) =
        (text(context, 0)?, text(context, 1)?, integer(context, 2)?)
    else {
        return Ok(Value::Null);
    };
    if separator.is_empty() {
        return refuse("the separator must not be empty");
    }
    let place = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    let part = match at {
        0 => return refuse("parts are counted from 1"),
        1.. => text.split(separator).nth(place - 1),
        _ => text.rsplit(separator).nth(place - 1),
    };
    Ok(Value::Text(part.unwrap_or_default().to_owned()))
}

/// A copy of an argument.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// An argument as SQLite takes it for a text.
fn any_text(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(json_text::float_text(number).into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

/// Without the characters of the second argument at the ends.
fn trim(context: &Context<'_>, start: bool, end: bool) -> Result<Value> {
    let (Some(text), Some(set)) = (any_text(context.get_raw(0)), any_text(context.get_raw(1)))
    else {
        return Ok(Value::Null);
    };
    let set = set.chars().collect::<HashSet<_>>();
    let mut text = &*text;
    if start {
        text = text.trim_start_matches(|c| set.contains(&c));
    }
    if end {
        text = text.trim_end_matches(|c| set.contains(&c));
    }
    Ok(Value::Text(text.to_owned()))
}

fn instr(context: &Context<'_>) -> Result<Value> {
    let found = |bytes: &[u8], part: &[u8]| memchr::memmem::find(bytes, part);
    Ok(match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Blob(bytes), ValueRef::Blob(part)) => place(found(bytes, part)),
        (a, b) => match (any_text(a), any_text(b)) {
            (Some(text), Some(part)) => {
                place(found(text.as_bytes(), part.as_bytes()).map(|at| text[..at].chars().count()))
            }
            _ => Value::Null,
        },
    })
}

/// Counted from 1; 0 for nowhere.
fn place(found: Option<usize>) -> Value {
    Value::Integer(found.map_or(0, |at| i64::try_from(at + 1).unwrap_or(i64::MAX)))
}

fn replace(context: &Context<'_>) -> Result<Value> {
    let arguments = [0, 1, 2].map(|at| any_text(context.get_raw(at)));
    let [Some(text), Some(part), Some(by)] = arguments else { return Ok(Value::Null) };
    if part.is_empty() {
        return Ok(Value::Text(text.into_owned()));
    }
    let found = memchr::memmem::find_iter(text.as_bytes(), part.as_bytes()).count();
    if (text.len() - found * part.len()).saturating_add(found.saturating_mul(by.len())) > LONGEST {
        return refuse("the value would be too large");
    }
    Ok(Value::Text(text.replace(&*part, &by)))
}
