//! A virtual table over the records of a [`Table`]: cells are taken out of the texts when SQLite asks.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::sql::table::{Kind, Table, Value};

/// Makes a table known by its name, without a statement that would create it.
pub(super) fn register(connection: &Connection, name: &str, table: &Arc<Table>) -> Result<()> {
    const MODULE: &Module<'static, Records<'static>> = &Module::eponymous_only_module();
    connection.create_module(name, MODULE, Some(Arc::clone(table)))
}

#[repr(C)]
struct Records<'vtab> {
    /// SQLite's part; it must be first.
    base: sqlite3_vtab,
    table: Arc<Table>,
    phantom: PhantomData<&'vtab ()>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct, as SQLite and rusqlite require.
unsafe impl<'vtab> VTab<'vtab> for Records<'vtab> {
    type Aux = Arc<Table>;
    type Cursor = Cursor<'vtab>;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let table = aux.ok_or_else(|| Error::ModuleError("no table".to_owned()))?;
        let declaration =
            CString::new(declaration(table)).map_err(|e| Error::ModuleError(e.to_string()))?;
        let records =
            Self { base: sqlite3_vtab::default(), table: Arc::clone(table), phantom: PhantomData };
        Ok((Cow::Owned(declaration), records))
    }

    /// An equality on a text column reads the rows of that text from the column's index. SQLite still
    /// compares each of them, so that an index can leave out rows but never change an answer. Not for
    /// `IN`, which would give the rows in the order of the list.
    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut best: Option<(usize, usize, usize)> = None;
        let candidates = info
            .constraints()
            .enumerate()
            .filter(|(_, c)| {
                c.is_usable() && c.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
            })
            .filter_map(|(at, c)| Some((at, usize::try_from(c.column()).ok()?)))
            .collect::<Vec<_>>();
        for (at, column) in candidates {
            if info.is_in_constraint(at)? || info.collation(at)? != "BINARY" {
                continue;
            }
            if let Some(index) = self.table.index(column)
                && best.is_none_or(|(_, _, distinct)| index.distinct() > distinct)
            {
                best = Some((at, column, index.distinct()));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rows = self.table.len() as f64;
        let Some((at, column, distinct)) = best else {
            info.set_estimated_cost(rows.max(1.0));
            info.set_estimated_rows(i64::try_from(self.table.len()).unwrap_or(i64::MAX));
            return Ok(true);
        };
        info.constraint_usage(at).set_argv_index(1);
        info.set_idx_num(c_int::try_from(column + 1).unwrap_or(0));
        let hits = self.table.len() / distinct.max(1) + 1;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        info.set_estimated_cost(hits as f64);
        info.set_estimated_rows(i64::try_from(hits).unwrap_or(i64::MAX));
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor<'vtab>> {
        let base = sqlite3_vtab_cursor::default();
        Ok(Cursor { base, table: &self.table, rows: Rows::All, at: 0 })
    }
}

/// `CREATE TABLE` with the columns and their affinities.
fn declaration(table: &Table) -> String {
    let mut out = "CREATE TABLE x(".to_owned();
    for (at, column) in table.columns().iter().enumerate() {
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
    table: &'vtab Table,
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
        let index = usize::try_from(idx_num - 1).ok().and_then(|column| self.table.index(column));
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
            Rows::All => self.at >= self.table.len(),
            Rows::Some(rows) => self.at >= rows.len(),
        }
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let value = self.table.value(self.row(), usize::try_from(column).unwrap_or(usize::MAX));
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
        Ok(i64::try_from(self.row()).unwrap_or(i64::MAX))
    }
}
