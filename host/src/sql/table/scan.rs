//! One pass over an answer: where the cells stand, which columns there are, what type each has.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use json_text::Json;

use super::{Cell, Column, Declared, Kind, Table, TooLarge};

/// What the cells of a column have been so far, one bit each.
#[derive(Clone, Copy, Default)]
struct Seen(u8);

impl Seen {
    const TEXT: u8 = 1;
    const INTEGER: u8 = 2;
    const DOUBLE: u8 = 4;
    const BOOLEAN: u8 = 8;
    /// Lists, objects, and integers beyond 64 bits.
    const OTHER: u8 = 16;

    fn only(self, bits: u8) -> bool {
        self.0 & !bits == 0
    }

    /// The type of the column; a declared one holds if every cell fits it.
    fn kind(self, declared: Option<Kind>) -> Kind {
        let fits = |kind| match kind {
            Kind::Text => self.only(Self::TEXT),
            Kind::Integer => self.only(Self::INTEGER),
            Kind::Double => self.only(Self::INTEGER | Self::DOUBLE),
            Kind::Boolean => self.only(Self::BOOLEAN),
            Kind::Json => true,
        };
        match declared {
            Some(kind) if fits(kind) => kind,
            Some(_) => Kind::Json,
            None => [Kind::Text, Kind::Integer, Kind::Double, Kind::Boolean]
                .into_iter()
                .find(|kind| fits(*kind))
                .unwrap_or(Kind::Json),
        }
    }
}

/// Lays out the members of a list.
pub(super) fn lay_out(declared: &[Declared], records: Vec<String>) -> Result<Table, TooLarge> {
    let mut scan = Scan::new(declared);
    let objects = records.iter().all(|text| Json::trusted(text).is_object());
    scan.starts.reserve(records.len() + 1);
    if !objects {
        // A list with anything else in it is one column, and an object in it one cell.
        let value = match scan.keys.get("\"value\"") {
            Some(column) => *column,
            None => scan.column("value"),
        };
        for text in &records {
            scan.begin(text)?;
            scan.cell(value, 0, text);
        }
    } else {
        for text in &records {
            scan.begin(text)?;
            scan.fields(text);
        }
    }
    if scan.columns.is_empty() {
        scan.column("value");
    }
    scan.finish(records)
}

/// The declared columns, to hold single records against.
pub(crate) struct Shape(Mutex<Scan>);

impl Shape {
    pub(crate) fn new(declared: &[Declared]) -> Self {
        Self(Mutex::new(Scan::new(declared)))
    }

    /// Whether a table of this record has the declared columns and no other, each of the declared type.
    pub(crate) fn fits(&self, record: &str) -> bool {
        if !Json::trusted(record).is_object() {
            return false;
        }
        let mut scan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if scan.begin(record).is_err() {
            return false;
        }
        scan.fields(record);
        let fits = scan.columns.len() == scan.declared.len()
            && (scan.seen.iter().zip(&scan.declared))
                .all(|(seen, declared)| declared.is_none_or(|kind| seen.kind(*declared) == kind));
        scan.forget();
        fits
    }
}

struct Scan {
    columns: Vec<Column>,
    declared: Vec<Option<Kind>>,
    seen: Vec<Seen>,
    /// The row that last had a cell in this column, and where: the last of two equal keys wins.
    last: Vec<Option<(usize, usize)>>,
    /// Column by key, as the key stands in a record (quotes and escapes included).
    keys: HashMap<String, usize>,
    /// The names of the columns in lower case, and the number that is next to tell one more of the name apart.
    names: HashMap<String, usize>,
    /// The keys of the record before, in order: most records of an answer have one shape.
    shape: Vec<(String, usize)>,
    row: usize,
    starts: Vec<u32>,
    cells: Vec<Cell>,
}

impl Scan {
    fn new(declared: &[Declared]) -> Self {
        let mut scan = Self {
            columns: Vec::new(),
            declared: declared.iter().map(|column| column.kind).collect(),
            seen: Vec::new(),
            last: Vec::new(),
            keys: HashMap::new(),
            names: HashMap::new(),
            shape: Vec::new(),
            row: 0,
            starts: vec![],
            cells: Vec::new(),
        };
        for column in declared {
            let mut key = String::new();
            json_text::quote(&column.name, &mut key);
            let at = scan.column(&column.name);
            scan.columns[at].sql_type.clone_from(&column.sql_type);
            scan.keys.insert(key, at);
        }
        scan
    }

    /// Back to the declared columns and no rows.
    fn forget(&mut self) {
        let declared = self.declared.len();
        if self.columns.len() > declared {
            self.columns.truncate(declared);
            self.keys.retain(|_, column| *column < declared);
            let names = self.columns.iter().map(|column| (column.name.to_ascii_lowercase(), 1));
            self.names = names.collect();
            self.shape.clear();
        }
        self.seen.clear();
        self.seen.resize(declared, Seen::default());
        self.last.clear();
        self.last.resize(declared, None);
        self.starts.clear();
        self.cells.clear();
    }

    fn begin(&mut self, record: &str) -> Result<(), TooLarge> {
        self.row = self.starts.len();
        u32::try_from(record.len()).map_err(|_| TooLarge)?;
        self.starts.push(u32::try_from(self.cells.len()).map_err(|_| TooLarge)?);
        Ok(())
    }

    /// The column of a key that was not met before, named apart from all others.
    fn column(&mut self, key: &str) -> usize {
        // A name that both engines can write down.
        let key = if key.is_empty() { "_".to_owned() } else { key.replace('\0', "\u{fffd}") };
        let lower = key.to_ascii_lowercase();
        let mut name = key;
        if let Some(next) = self.names.get(&lower).copied() {
            let numbered = |n: &usize| format!("{lower}_{n}");
            let free = (next..).find(|n| !self.names.contains_key(&numbered(n)));
            let free = free.unwrap_or_default();
            name.push_str(&format!("_{free}"));
            self.names.insert(lower, free + 1);
        }
        self.names.insert(name.to_ascii_lowercase(), 1);
        self.columns.push(Column { name, kind: Kind::Text, sql_type: None });
        self.seen.push(Seen::default());
        self.last.push(None);
        self.columns.len() - 1
    }

    fn fields(&mut self, record: &str) {
        let bytes = record.as_bytes();
        let mut at = blanks(bytes, 0) + 1;
        for position in 0.. {
            at = blanks(bytes, at);
            if bytes.get(at) == Some(&b',') {
                at = blanks(bytes, at + 1);
            }
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            let key_end = string_end(bytes, at);
            let column = self.column_at(position, &record[at..key_end]);
            let start = blanks(bytes, blanks(bytes, key_end) + 1);
            at = value_end(bytes, start);
            self.cell(column, start, &record[start..at]);
        }
    }

    /// The column of the key that stands at this place of a record.
    fn column_at(&mut self, position: usize, key: &str) -> usize {
        match self.shape.get(position) {
            Some((expected, column)) if expected == key => return *column,
            _ => {}
        }
        let column = match self.keys.get(key) {
            Some(column) => *column,
            None => {
                let name = Json::trusted(key).as_str().unwrap_or_default().into_owned();
                // The same key may be written in several ways.
                let mut canonical = String::new();
                json_text::quote(&name, &mut canonical);
                let column = match self.keys.get(&canonical) {
                    Some(column) => *column,
                    None => self.column(&name),
                };
                self.keys.insert(canonical, column);
                self.keys.insert(key.to_owned(), column);
                column
            }
        };
        self.shape.truncate(position);
        if self.shape.len() == position {
            self.shape.push((key.to_owned(), column));
        }
        column
    }

    fn cell(&mut self, column: usize, start: usize, text: &str) {
        let bits = match text.as_bytes().first() {
            None | Some(b'n') => 0,
            Some(b'"') => Seen::TEXT,
            Some(b't' | b'f') => Seen::BOOLEAN,
            Some(b'{' | b'[') => Seen::OTHER,
            Some(b'N' | b'I') => Seen::DOUBLE,
            Some(_) => number_bits(text),
        };
        let earlier = self.last[column].filter(|(row, _)| *row == self.row).map(|(_, cell)| cell);
        // A table of more than 4 GiB was refused before, so that these fit.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let cell =
            Cell { column: place(column), start: place(start), end: place(start + text.len()) };
        self.seen[column].0 |= bits;
        match earlier {
            Some(at) => self.cells[at] = cell,
            None if bits == 0 => {}
            None => {
                self.last[column] = Some((self.row, self.cells.len()));
                self.cells.push(cell);
            }
        }
    }

    fn finish(mut self, records: Vec<String>) -> Result<Table, TooLarge> {
        self.starts.push(u32::try_from(self.cells.len()).map_err(|_| TooLarge)?);
        for (at, column) in self.columns.iter_mut().enumerate() {
            let declared = self.declared.get(at).copied().flatten();
            column.kind = self.seen[at].kind(declared);
            column.sql_type = column.sql_type.take().filter(|_| declared == Some(column.kind));
        }
        let indexes = self.columns.iter().map(|_| OnceLock::new()).collect();
        Ok(Table {
            columns: self.columns,
            records,
            starts: self.starts,
            cells: self.cells,
            indexes,
        })
    }
}

fn number_bits(text: &str) -> u8 {
    if text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E' | b'I')) {
        Seen::DOUBLE
    } else if text.parse::<i64>().is_ok() {
        Seen::INTEGER
    } else {
        Seen::OTHER
    }
}

fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Where the string that starts at `at` ends, quotes included.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(n) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + n] == b'"' {
            return at + n + 1;
        }
        at += n + 2;
    }
    bytes.len()
}

/// Where the value that starts at `at` ends.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        _ => {
            while bytes
                .get(at)
                .is_some_and(|b| !matches!(b, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
            {
                at += 1;
            }
            at
        }
    }
}
