//! [`Statements`]: what a text says, and [`Prepared`]: one of them, ready to run.

use std::marker::PhantomData;
use std::ptr;

use super::rows::{RawResult, Rows};
use super::{Connection, Functions, Idx, OK, Pointer, copied};
use crate::sql::table::{Declared, Kind};

/// `DUCKDB_STATEMENT_TYPE_SELECT` and `…_CREATE`.
const SELECT: i32 = 1;
const CREATE: i32 = 7;

/// The type of a result column, as far as writing it down goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sql::engine::duckdb) enum ReadType {
    Boolean,
    /// Integers, decimals, floating point.
    Number,
    Json,
    /// Lists, structs, maps and the like.
    Nested,
    /// Everything whose text is its value.
    Text,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sql::engine::duckdb) struct ResultColumn {
    pub(in crate::sql::engine::duckdb) read: ReadType,
    pub(in crate::sql::engine::duckdb) declared: Declared,
}

impl ResultColumn {
    /// Whether its cells are the texts that are to be read.
    pub(in crate::sql::engine::duckdb) fn is_stored_as_text(&self) -> bool {
        let known = (self.read, self.declared.kind, &self.declared.sql_type);
        matches!(
            known,
            (ReadType::Text, Some(Kind::Text), None) | (ReadType::Json, Some(Kind::Json), None)
        )
    }
}

/// The statements of a text.
pub(in crate::sql::engine::duckdb) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    pub(super) raw: Pointer,
    pub(super) count: Idx,
}

impl Drop for Statements<'_> {
    fn drop(&mut self) {
        // SAFETY: extracted once, destroyed once.
        unsafe { (self.connection.api().destroy_extracted)(&raw mut self.raw) };
    }
}

impl Statements<'_> {
    /// How many there are; at least one.
    pub(in crate::sql::engine::duckdb) fn count(&self) -> u64 {
        self.count
    }

    /// Prepares one of them.
    pub(in crate::sql::engine::duckdb) fn prepare(&self, at: u64) -> Result<Prepared<'_>, String> {
        let api = self.connection.api();
        let mut raw = ptr::null_mut();
        // SAFETY: connection and statements are alive; the statement is destroyed by its `Drop`, failed or not.
        let state = unsafe {
            (api.prepare_extracted_statement)(self.connection.raw, self.raw, at, &raw mut raw)
        };
        let prepared = Prepared { api, raw, phantom: PhantomData };
        if state == OK {
            return Ok(prepared);
        }
        // SAFETY: the failed statement is alive.
        Err(copied(unsafe { (api.prepare_error)(prepared.raw) }))
    }
}

/// A statement that can run.
pub(in crate::sql::engine::duckdb) struct Prepared<'c> {
    api: &'c Functions,
    raw: Pointer,
    phantom: PhantomData<&'c ()>,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: prepared once, destroyed once.
        unsafe { (self.api.destroy_prepare)(&raw mut self.raw) };
    }
}

impl Prepared<'_> {
    pub(in crate::sql::engine::duckdb) fn is_select(&self) -> bool {
        // SAFETY: the statement is alive.
        unsafe { (self.api.prepared_statement_type)(self.raw) == SELECT }
    }

    pub(in crate::sql::engine::duckdb) fn is_create(&self) -> bool {
        // SAFETY: the statement is alive.
        unsafe { (self.api.prepared_statement_type)(self.raw) == CREATE }
    }

    /// How many values it waits for.
    pub(in crate::sql::engine::duckdb) fn params(&self) -> u64 {
        // SAFETY: the statement is alive.
        unsafe { (self.api.nparams)(self.raw) }
    }

    /// Its columns.
    pub(in crate::sql::engine::duckdb) fn columns(&self) -> Vec<ResultColumn> {
        // SAFETY: the statement is alive, and every column asked for is below the count.
        let count = unsafe { (self.api.prepared_statement_column_count)(self.raw) };
        (0..count)
            .map(|at| {
                // SAFETY: as above; the name is ours to free.
                let name = self
                    .api
                    .taken(unsafe { (self.api.prepared_statement_column_name)(self.raw, at) });
                // SAFETY: as above; the type is ours to destroy.
                let mut raw =
                    unsafe { (self.api.prepared_statement_column_logical_type)(self.raw, at) };
                let (read, kind, sql_type) = self.column_type(raw);
                // SAFETY: given once, destroyed once.
                unsafe { (self.api.destroy_logical_type)(&raw mut raw) };
                ResultColumn { read, declared: Declared { name, kind, sql_type } }
            })
            .collect()
    }

    /// How a column is read, what its cells are as JSON, and its type in SQL where that says more.
    fn column_type(&self, raw: Pointer) -> (ReadType, Option<Kind>, Option<String>) {
        // SAFETY: the type is alive; the alias is ours to free.
        let (id, alias) =
            unsafe { ((self.api.get_type_id)(raw), (self.api.logical_type_get_alias)(raw)) };
        let alias = self.api.taken(alias);
        let of = |read, kind, sql_type: &str| (read, Some(kind), Some(sql_type.to_owned()));
        let integer = |sql_type| of(ReadType::Number, Kind::Integer, sql_type);
        // What may not fit 64 bits goes as it is written.
        let large = |sql_type| of(ReadType::Number, Kind::Json, sql_type);
        let text = |sql_type| of(ReadType::Text, Kind::Text, sql_type);
        match id {
            1 => (ReadType::Boolean, Some(Kind::Boolean), None),
            2 => integer("TINYINT"),
            3 => integer("SMALLINT"),
            4 => integer("INTEGER"),
            5 => (ReadType::Number, Some(Kind::Integer), None),
            6 => integer("UTINYINT"),
            7 => integer("USMALLINT"),
            8 => integer("UINTEGER"),
            9 => large("UBIGINT"),
            10 => of(ReadType::Number, Kind::Double, "FLOAT"),
            11 => (ReadType::Number, Some(Kind::Double), None),
            12 => text("TIMESTAMP"),
            13 => text("DATE"),
            14 => text("TIME"),
            15 => text("INTERVAL"),
            16 => large("HUGEINT"),
            17 if alias == "JSON" => (ReadType::Json, Some(Kind::Json), None),
            17 => (ReadType::Text, Some(Kind::Text), None),
            18 => text("BLOB"),
            19 => {
                // SAFETY: the type is alive, and a decimal.
                let (width, scale) =
                    unsafe { ((self.api.decimal_width)(raw), (self.api.decimal_scale)(raw)) };
                large(&format!("DECIMAL({width},{scale})"))
            }
            20 => text("TIMESTAMP_S"),
            21 => text("TIMESTAMP_MS"),
            22 => text("TIMESTAMP_NS"),
            27 => text("UUID"),
            30 => text("TIMETZ"),
            31 => text("TIMESTAMPTZ"),
            32 => large("UHUGEINT"),
            35 => large("BIGNUM"),
            // LIST, STRUCT, MAP, UNION, ARRAY, VARIANT.
            24..=26 | 28 | 33 | 41 => (ReadType::Nested, Some(Kind::Json), None),
            _ => (ReadType::Text, None, None),
        }
    }

    /// Runs it for its effect on the connection.
    pub(in crate::sql::engine::duckdb) fn execute(&self) -> Result<(), String> {
        self.run(self.api.execute_prepared).map(drop)
    }

    /// Runs it; rows come as they are fetched.
    pub(in crate::sql::engine::duckdb) fn stream(&self) -> Result<Rows<'_>, String> {
        self.run(self.api.execute_prepared_streaming)
    }

    fn run(
        &self,
        call: unsafe extern "C" fn(Pointer, *mut RawResult) -> i32,
    ) -> Result<Rows<'_>, String> {
        let mut rows =
            Rows { api: self.api, raw: RawResult([ptr::null_mut(); 6]), phantom: PhantomData };
        // SAFETY: the statement is alive; the result is destroyed by its `Drop`, failed or not.
        let state = unsafe { call(self.raw, &raw mut rows.raw) };
        if state == OK { Ok(rows) } else { Err(rows.error()) }
    }
}
