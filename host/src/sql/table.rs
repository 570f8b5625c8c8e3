//! [`Table`]: what an operation answered, as rows and typed columns (the SQL contract §5).
//!
//! The records stay the texts they are; a table only knows where in them each cell stands. A cell is
//! decoded when an engine asks for it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use json_text::Json;
use serde::{Deserialize, Serialize};

use super::answer::Answer;

mod scan;

pub(crate) use scan::Shape;

/// The type of a column in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Text.
    Text,
    /// Integers of 64 bits.
    Integer,
    /// Doubles.
    Double,
    /// Booleans.
    Boolean,
    /// Anything: every cell holds its JSON text.
    Json,
}

impl Kind {
    /// The kind behind the one-letter type of a descriptor: `s`, `i`, `f`, `b`, `j`.
    #[must_use]
    pub fn of_letter(letter: &str) -> Self {
        match letter {
            "s" => Self::Text,
            "i" => Self::Integer,
            "f" => Self::Double,
            "b" => Self::Boolean,
            _ => Self::Json,
        }
    }
}

/// What an operation answered. Every text is one valid JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// One value: an object, a list, a scalar.
    Value(String),
    /// The members of a list.
    Records(Vec<String>),
}

/// A column that an answer has in any case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Declared {
    /// The key.
    pub name: String,
    /// Its type, if it is known before the cells are; a cell that does not fit makes the column JSON.
    pub kind: Option<Kind>,
    /// The type in the words of the engine that made the answer, if that says more.
    pub sql_type: Option<String>,
}

impl Declared {
    /// Of this type, or of the one that its cells have.
    pub fn new(name: impl Into<String>, kind: Option<Kind>) -> Self {
        Self { name: name.into(), kind, sql_type: None }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in SQL: the key, or `key_1` if an earlier key differs only in case.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The type in the words of the engine that made the answer, if that says more.
    pub sql_type: Option<String>,
}

impl From<Column> for Declared {
    fn from(Column { name, kind, sql_type }: Column) -> Self {
        Self { name, kind: Some(kind), sql_type }
    }
}

/// Rows and typed columns.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    records: Vec<String>,
    /// Where the cells of each row start in `cells`; one more than there are rows.
    starts: Vec<u32>,
    cells: Vec<Cell>,
    indexes: Vec<OnceLock<Index>>,
}

/// A cell that is not null: its column, and where its value stands in the row's record.
#[derive(Debug, Clone, Copy)]
struct Cell {
    column: u32,
    start: u32,
    end: u32,
}

impl Table {
    /// Lays out an answer. `declared` come first, in their order; keys that occur beside them follow,
    /// by first appearance.
    ///
    /// # Errors
    /// When the answer is too large to be addressed (more than 4 GiB, or four thousand million cells).
    pub fn new(declared: &[Declared], body: Body) -> Result<Self, TooLarge> {
        let records = match body {
            Body::Records(records) => records,
            Body::Value(text) => {
                let json = Json::trusted(&text);
                match json.kind() {
                    json_text::Kind::Null => Vec::new(),
                    json_text::Kind::Array => {
                        json.items().map(|item| item.text().to_owned()).collect()
                    }
                    _ => vec![text],
                }
            }
        };
        scan::lay_out(declared, records)
    }

    /// Lays out the rows of a statement, for another statement to read.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn of_answer(answer: &Answer) -> Result<Self, TooLarge> {
        Self::new(&answer.columns, Body::Value(answer.rows.clone()))
    }

    /// The columns, in order; at least one.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory the table takes, about.
    #[must_use]
    pub fn size(&self) -> usize {
        let texts =
            self.records.iter().map(|text| text.capacity() + size_of::<String>()).sum::<usize>();
        texts
            + self.cells.capacity() * size_of::<Cell>()
            + self.starts.capacity() * size_of::<u32>()
    }

    /// The JSON text of a cell; `None` for null and for a key that the record lacks.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<&str> {
        let from = *self.starts.get(row)? as usize;
        let cells = &self.cells[from..self.starts[row + 1] as usize];
        // In records of one shape the cell stands at the column's own place, or before it.
        let cell = match cells.get(column) {
            Some(cell) if cell.column as usize == column => cell,
            _ => cells.iter().find(|cell| cell.column as usize == column)?,
        };
        self.records[row].get(cell.start as usize..cell.end as usize)
    }

    /// A cell as its column's type has it.
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> Value<'_> {
        let Some(text) = self.cell(row, column) else { return Value::Null };
        let json = Json::trusted(text);
        match self.columns[column].kind {
            Kind::Text => json.as_str().map_or(Value::Null, Value::Text),
            Kind::Integer => json.as_i64().map_or(Value::Null, Value::Integer),
            Kind::Double => match json.as_f64() {
                Some(number) if number.is_finite() => Value::Double(number),
                _ => Value::Null,
            },
            Kind::Boolean => json.as_bool().map_or(Value::Null, Value::Boolean),
            Kind::Json => match compact(text) {
                Cow::Borrowed("null") => Value::Null,
                text => Value::Json(text),
            },
        }
    }

    /// The index of a text column, made when first asked for.
    #[must_use]
    pub fn index(&self, column: usize) -> Option<&Index> {
        let slot = self.indexes.get(column)?;
        if self.columns[column].kind != Kind::Text {
            return None;
        }
        Some(slot.get_or_init(|| {
            let mut index = Index { hasher: RandomState::new(), rows: HashMap::new() };
            for row in 0..self.len() {
                if let Value::Text(text) = self.value(row, column) {
                    let hash = index.hasher.hash_one(text.as_bytes());
                    index
                        .rows
                        .entry(hash)
                        .or_default()
                        .push(u32::try_from(row).unwrap_or(u32::MAX));
                }
            }
            index
        }))
    }
}

/// A cell, decoded.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    /// Null, a missing key, or a number that is none.
    Null,
    /// Text; a lone surrogate shows as U+FFFD.
    Text(Cow<'a, str>),
    /// A 64-bit integer.
    Integer(i64),
    /// A finite double.
    Double(f64),
    /// A boolean.
    Boolean(bool),
    /// A JSON text without blanks.
    Json(Cow<'a, str>),
}

/// Rows of a table by the text in one column.
#[derive(Debug)]
pub struct Index {
    hasher: RandomState,
    /// By the text's hash: equal texts are together, and so may others be.
    rows: HashMap<u64, Vec<u32>>,
}

impl Index {
    /// The rows, in order, that may hold this text; all that do are among them.
    #[must_use]
    pub fn candidates(&self, text: &str) -> &[u32] {
        self.rows.get(&self.hasher.hash_one(text.as_bytes())).map_or(&[], Vec::as_slice)
    }

    /// How many different texts there are, about.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.rows.len()
    }
}

/// An answer has more bytes or cells than a table can address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is too large to be a table")]
pub struct TooLarge;

/// A checked JSON text without blanks between its tokens. Numbers stay as written; the tokens that
/// JSON does not know (`NaN`, `Infinity`, `-Infinity`) become null.
pub fn compact(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let from = at;
        at = match byte {
            b'"' => scan::string_end(bytes, at),
            b' ' | b'\n' | b'\r' | b'\t' => {
                out.get_or_insert_with(|| bytes[..from].to_vec());
                at += 1;
                continue;
            }
            b'N' | b'I' | b'-' if !bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                let len = if byte == b'N' { 3 } else { 8 + usize::from(byte == b'-') };
                out.get_or_insert_with(|| bytes[..from].to_vec()).extend_from_slice(b"null");
                at += len;
                continue;
            }
            _ => at + 1,
        };
        if let Some(out) = &mut out {
            out.extend_from_slice(&bytes[from..at.min(bytes.len())]);
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests;
