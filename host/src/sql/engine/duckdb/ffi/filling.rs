//! [`Appender`]: rows on their way into a table.

use super::{Functions, Idx, OK, Pointer, copied};

/// The type of a column that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sql::engine::duckdb) enum WrittenType {
    Boolean = 1,
    Bigint = 5,
    Double = 11,
    Varchar = 17,
    /// A varchar that is known to be JSON.
    Json,
}

/// A table that is being filled.
pub(in crate::sql::engine::duckdb) struct Appender<'c> {
    pub(super) api: &'c Functions,
    pub(super) raw: Pointer,
    pub(super) chunk: Writer<'c>,
}

impl<'c> Appender<'c> {
    /// Adds rows; `write` is asked for each cell.
    pub(in crate::sql::engine::duckdb) fn append(
        &mut self,
        rows: usize,
        mut write: impl FnMut(&mut Writer<'c>, usize, usize),
    ) -> Result<(), String> {
        let mut at = 0;
        while at < rows {
            let chunk = &mut self.chunk;
            let size = chunk.capacity.min(rows - at);
            chunk.begin(size);
            for column in 0..chunk.types.len() {
                for row in 0..size {
                    chunk.at = (column, row);
                    write(chunk, at + row, column);
                }
            }
            // SAFETY: both are alive; the chunk has the size that was written.
            self.done(unsafe { (self.api.append_data_chunk)(self.raw, self.chunk.raw) })?;
            at += size;
        }
        Ok(())
    }

    /// All rows are there.
    pub(in crate::sql::engine::duckdb) fn close(self) -> Result<(), String> {
        // SAFETY: the appender is alive.
        self.done(unsafe { (self.api.appender_close)(self.raw) })
    }

    pub(super) fn done(&self, state: i32) -> Result<(), String> {
        if state == OK {
            return Ok(());
        }
        // SAFETY: the appender is alive, or null after a failed creation, which gives no text.
        Err(copied(unsafe { (self.api.appender_error)(self.raw) }))
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.api.appender_destroy)(&raw mut self.raw) };
    }
}

/// A chunk that is filled cell by cell, then appended, then filled again.
pub(in crate::sql::engine::duckdb) struct Writer<'c> {
    api: &'c Functions,
    raw: Pointer,
    types: Vec<WrittenType>,
    capacity: usize,
    vectors: Vec<Pointer>,
    /// Column and row of the cell that is written next.
    at: (usize, usize),
}

impl<'c> Writer<'c> {
    pub(super) fn new(api: &'c Functions, types: Vec<WrittenType>) -> Self {
        let mut raw_types = Vec::with_capacity(types.len());
        // SAFETY: every type made here is destroyed below; the chunk copies them.
        let raw = unsafe {
            for written in &types {
                let json = *written == WrittenType::Json;
                let of = if json { WrittenType::Varchar as i32 } else { *written as i32 };
                let raw_type = (api.create_logical_type)(of);
                if json {
                    (api.logical_type_set_alias)(raw_type, c"JSON".as_ptr());
                }
                raw_types.push(raw_type);
            }
            let raw = (api.create_data_chunk)(raw_types.as_mut_ptr(), raw_types.len() as Idx);
            for raw_type in &mut raw_types {
                (api.destroy_logical_type)(raw_type);
            }
            raw
        };
        // SAFETY: takes nothing.
        let capacity = usize::try_from(unsafe { (api.vector_size)() }).unwrap_or(1);
        Self { api, raw, types, capacity, vectors: Vec::new(), at: (0, 0) }
    }

    fn begin(&mut self, size: usize) {
        self.vectors.clear();
        // SAFETY: the chunk is alive, `size` is within its capacity, and the columns are those it was made with.
        unsafe {
            (self.api.data_chunk_reset)(self.raw);
            (self.api.data_chunk_set_size)(self.raw, size as Idx);
            for column in 0..self.types.len() {
                self.vectors.push((self.api.data_chunk_get_vector)(self.raw, column as Idx));
            }
        }
    }

    fn cell<T: Copy>(&mut self, expected: WrittenType, value: T) {
        let (column, row) = self.at;
        if self.types[column] != expected {
            return self.null();
        }
        // SAFETY: the vector holds `capacity` values of the type that `expected` names, which `T` is, as
        // only the methods below call this; `row` is below the chunk's size.
        unsafe {
            let data = (self.api.vector_get_data)(self.vectors[column]).cast::<T>();
            data.add(row).write(value);
        }
    }

    pub(in crate::sql::engine::duckdb) fn integer(&mut self, value: i64) {
        self.cell(WrittenType::Bigint, value);
    }

    pub(in crate::sql::engine::duckdb) fn double(&mut self, value: f64) {
        self.cell(WrittenType::Double, value);
    }

    pub(in crate::sql::engine::duckdb) fn boolean(&mut self, value: bool) {
        self.cell(WrittenType::Boolean, u8::from(value));
    }

    /// A text, or the text of a JSON value.
    pub(in crate::sql::engine::duckdb) fn text(&mut self, value: &str) {
        let (column, row) = self.at;
        if !matches!(self.types[column], WrittenType::Varchar | WrittenType::Json) {
            return self.null();
        }
        // SAFETY: the vector is one of texts, `row` is below the chunk's size; the bytes are UTF-8, and copied.
        unsafe {
            (self.api.unsafe_vector_assign_string_element_len)(
                self.vectors[column],
                row as Idx,
                value.as_ptr().cast(),
                value.len() as Idx,
            );
        }
    }

    pub(in crate::sql::engine::duckdb) fn null(&mut self) {
        let (column, row) = self.at;
        // SAFETY: the mask has a bit for every row of the chunk once it is writable.
        unsafe {
            (self.api.vector_ensure_validity_writable)(self.vectors[column]);
            let mask = (self.api.vector_get_validity)(self.vectors[column]);
            *mask.add(row / 64) &= !(1 << (row % 64));
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.api.destroy_data_chunk)(&raw mut self.raw) };
    }
}
