//! A virtual table over the records of a [`Feed`]: cells are taken out of the texts when SQLite asks, and of a table
//! that is given by parts only those that it asks for.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use super::{Scanned, Wanted};
use crate::sql::feed::{Feed, Part, Parts, Wants};
use crate::sql::table::{Column, Kind, Table, Value};

/// Makes a table known by its name, without a statement that would create it. `at` is its place in the statement.
pub(super) fn register(
    connection: &Connection,
    name: &str,
    at: usize,
    feed: &Feed,
    wishes: (&Wanted, &Scanned),
) -> Result<()> {
    const MODULE: &Module<'static, Records<'static>> = &Module::eponymous_only_module();
    let (wanted, scanned) = wishes;
    let source =
        Origin { at, feed: feed.clone(), wanted: wanted.clone(), scanned: scanned.clone() };
    connection.create_module(name, MODULE, Some(source))
}

/// Where the rows come from.
#[derive(Clone)]
struct Origin {
    at: usize,
    feed: Feed,
    wanted: Wanted,
    scanned: Scanned,
}

impl Origin {
    /// The rows of one text, which SQLite compares all the same, none for null; or what is wanted instead.
    fn part<'a>(
        &'a self,
        parts: &'a Parts,
        column: Option<usize>,
        args: &Filters<'_>,
    ) -> Result<Option<(usize, &'a Table)>> {
        let Some(column) = column else { return Err(self.want(None)) };
        let text = match args.iter().next() {
            Some(ValueRef::Null) => return Ok(None),
            Some(ValueRef::Text(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        };
        let Some(text) = text else { return Err(self.want(None)) };
        if let Some(part) = parts.get(column, text) {
            return Ok(Some(part));
        }
        let part = || Part { column, text: text.to_owned() };
        Err(self.want(parts.can_read(column, text).then(part)))
    }

    /// Ends the statement, to be run again with what it wants.
    fn want(&self, part: Option<Part>) -> Error {
        self.wanted.put(Wants { table: self.at, part });
        Error::ModuleError("rows are to be read first".to_owned())
    }
}

#[repr(C)]
struct Records<'vtab> {
    /// SQLite's part; it must be first.
    base: sqlite3_vtab,
    source: Origin,
    phantom: PhantomData<&'vtab ()>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct, as SQLite and rusqlite require.
unsafe impl<'vtab> VTab<'vtab> for Records<'vtab> {
    type Aux = Origin;
    type Cursor = Cursor<'vtab>;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let source = aux.ok_or_else(|| Error::ModuleError("no table".to_owned()))?;
        let declaration = CString::new(declaration(source.feed.columns()))
            .map_err(|e| Error::ModuleError(e.to_string()))?;
        let records =
            Self { base: sqlite3_vtab::default(), source: source.clone(), phantom: PhantomData };
        Ok((Cow::Owned(declaration), records))
    }

    /// An equality on a text column reads the rows of that text from the column's index. SQLite still
    /// compares each of them, so that an index can leave out rows but never change an answer. Not for
    /// `IN`, which would give the rows in the order of the list.
    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut equalities = Vec::new();
        let scanned = self.source.scanned.load(Relaxed);
        let candidates = info
            .constraints()
            .enumerate()
            .filter(|(_, c)| {
                !scanned
                    && c.is_usable()
                    && c.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
            })
            .filter_map(|(at, c)| Some((at, usize::try_from(c.column()).ok()?)))
            .collect::<Vec<_>>();
        for (at, column) in candidates {
            if info.is_in_constraint(at)? || info.collation(at)? != "BINARY" {
                continue;
            }
            equalities.push((at, column));
        }
        let Choice { by, rows } = match &self.source.feed {
            Feed::Whole(table) => choose_index(table, &equalities),
            Feed::Parts(parts) => choose_part(parts, &equalities),
        };
        if let Some((at, column)) = by {
            info.constraint_usage(at).set_argv_index(1);
            info.set_idx_num(c_int::try_from(column + 1).unwrap_or(0));
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        info.set_estimated_cost(rows.max(1) as f64);
        info.set_estimated_rows(i64::try_from(rows).unwrap_or(i64::MAX));
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor<'vtab>> {
        let base = sqlite3_vtab_cursor::default();
        Ok(Cursor { base, source: &self.source, table: None, part: 0, rows: Rows::All, at: 0 })
    }
}

/// How a scan will go: the constraint and the column it reads by, if any, and how many rows that may give.
struct Choice {
    by: Option<(usize, usize)>,
    rows: usize,
}

/// The column that tells most rows apart.
fn choose_index(table: &Table, equalities: &[(usize, usize)]) -> Choice {
    let indexed = equalities
        .iter()
        .filter_map(|(at, column)| Some((*at, *column, table.index(*column)?.distinct())))
        .reduce(|best, other| if other.2 > best.2 { other } else { best });
    match indexed {
        Some((at, column, distinct)) => {
            Choice { by: Some((at, column)), rows: table.len() / distinct.max(1) + 1 }
        }
        None => Choice { by: None, rows: table.len() },
    }
}

/// How many rows a part has that nobody has seen, and how many the whole.
const PART: usize = 25;
const WHOLE: usize = 100_000;

fn choose_part(parts: &Parts, equalities: &[(usize, usize)]) -> Choice {
    let by = equalities.iter().find(|(_, column)| parts.by.contains(column)).copied();
    Choice { by, rows: if by.is_some() { PART } else { WHOLE } }
}

/// `CREATE TABLE` with the columns and their affinities.
fn declaration(columns: &[Column]) -> String {
    let mut out = "CREATE TABLE x(".to_owned();
    for (at, column) in columns.iter().enumerate() {
        let affinity = match column.kind {
            // JSON is compared as the text it is.
            Kind::Text | Kind::Json => "TEXT",
            Kind::Integer => "INTEGER",
            Kind::Double => "REAL",
            Kind::Boolean => "BOOLEAN",
        };
        if at > 0 {
            out.push(',');
        }
        out.push_str(&format!("\"{}\" {affinity}", column.name.replace('"', "\"\"")));
    }
    out.push(')');
    out
}

/// Which rows a cursor passes over.
enum Rows<'vtab> {
    All,
    Some(&'vtab [u32]),
}

#[repr(C)]
struct Cursor<'vtab> {
    /// SQLite's part; it must be first.
    base: sqlite3_vtab_cursor,
    source: &'vtab Origin,
    /// None before the first scan.
    table: Option<&'vtab Table>,
    /// Which part that is.
    part: usize,
    rows: Rows<'vtab>,
    at: usize,
}

impl Cursor<'_> {
    fn row(&self) -> usize {
        match self.rows {
            Rows::All => self.at,
            Rows::Some(rows) => rows.get(self.at).map_or(usize::MAX, |row| *row as usize),
        }
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct, as SQLite and rusqlite require.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, idx_num: c_int, _: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.at = 0;
        let column = usize::try_from(idx_num - 1).ok();
        let whole = match &self.source.feed {
            Feed::Whole(table) => table,
            Feed::Parts(parts) => {
                let part = self.source.part(parts, column, args)?;
                (self.part, self.table) = part.map_or((0, None), |(at, table)| (at, Some(table)));
                self.rows = Rows::All;
                return Ok(());
            }
        };
        self.table = Some(whole);
        let index = column.and_then(|column| whole.index(column));
        self.rows = match (index, args.iter().next()) {
            // Nothing equals null.
            (Some(_), Some(ValueRef::Null)) => Rows::Some(&[]),
            (Some(index), Some(ValueRef::Text(text))) => match std::str::from_utf8(text) {
                Ok(text) => Rows::Some(index.candidates(text)),
                Err(_) => Rows::All,
            },
            // A number may be compared as one, to which several texts are equal.
            _ => Rows::All,
        };
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        match self.rows {
            Rows::All => self.at >= self.table.map_or(0, Table::len),
            Rows::Some(rows) => self.at >= rows.len(),
        }
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let value = self.table.map_or(Value::Null, |table| table.value(self.row(), column));
        let value = match &value {
            Value::Null => ValueRef::Null,
            Value::Text(text) | Value::Json(text) => ValueRef::Text(text.as_bytes()),
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Double(number) => ValueRef::Real(*number),
            Value::Boolean(truth) => ValueRef::Integer(i64::from(*truth)),
        };
        context.set_result(ToSqlOutput::Borrowed(value))
    }

    fn rowid(&self) -> Result<i64> {
        // SQLite tells rows apart by it where conditions are joined by OR.
        let row = (self.part << u32::BITS) | self.row();
        Ok(i64::try_from(row).unwrap_or(i64::MAX))
    }
}
