//! [`Rows`]: what a statement gives, chunk by chunk.

use std::marker::PhantomData;

use super::{Functions, Idx, Pointer, copied};

/// A `duckdb_result`: six words, of which only the library knows the meaning.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawResult(pub(super) [Pointer; 6]);

/// A `duckdb_string_t`: the length, then twelve bytes of text, or four and a pointer to the whole.
#[repr(C)]
#[derive(Clone, Copy)]
union RawText {
    inlined: (u32, [u8; 12]),
    pointer: RawPointer,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawPointer {
    length: u32,
    prefix: [u8; 4],
    text: *const u8,
}

/// The rows of a statement.
pub(in crate::sql::engine::duckdb) struct Rows<'c> {
    pub(super) api: &'c Functions,
    pub(super) raw: RawResult,
    pub(super) phantom: PhantomData<&'c ()>,
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { (self.api.destroy_result)(&raw mut self.raw) };
    }
}

impl Rows<'_> {
    pub(super) fn error(&mut self) -> String {
        // SAFETY: the result is alive.
        copied(unsafe { (self.api.result_error)(&raw mut self.raw) })
    }

    /// The next rows; `None` when there are no more.
    pub(in crate::sql::engine::duckdb) fn chunk(&mut self) -> Result<Option<Chunk<'_>>, String> {
        // SAFETY: the result is alive; the chunk is destroyed by its `Drop`.
        let raw = unsafe { (self.api.fetch_chunk)(self.raw) };
        if raw.is_null() {
            let error = self.error();
            return if error.is_empty() { Ok(None) } else { Err(error) };
        }
        // SAFETY: the chunk is alive.
        let size = usize::try_from(unsafe { (self.api.data_chunk_get_size)(raw) }).unwrap_or(0);
        Ok(Some(Chunk { api: self.api, raw, size, phantom: PhantomData }))
    }
}

/// Some rows, every column of which is a varchar.
pub(in crate::sql::engine::duckdb) struct Chunk<'r> {
    api: &'r Functions,
    raw: Pointer,
    pub(in crate::sql::engine::duckdb) size: usize,
    phantom: PhantomData<&'r ()>,
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        // SAFETY: given once, destroyed once.
        unsafe { (self.api.destroy_data_chunk)(&raw mut self.raw) };
    }
}

impl Chunk<'_> {
    /// A column, which must be one of varchars: the caller's statement casts every column to that.
    pub(in crate::sql::engine::duckdb) fn column(&self, at: usize) -> Texts<'_> {
        // SAFETY: the chunk is alive, and has the columns of the statement.
        let (data, mask) = unsafe {
            let vector = (self.api.data_chunk_get_vector)(self.raw, at as Idx);
            (
                (self.api.vector_get_data)(vector).cast::<RawText>(),
                (self.api.vector_get_validity)(vector),
            )
        };
        Texts { data, mask: mask.cast_const(), size: self.size, phantom: PhantomData }
    }
}

/// The texts of a column.
pub(in crate::sql::engine::duckdb) struct Texts<'r> {
    data: *const RawText,
    mask: *const u64,
    size: usize,
    phantom: PhantomData<&'r ()>,
}

impl<'r> Texts<'r> {
    /// The text in a row; `None` for null.
    pub(in crate::sql::engine::duckdb) fn get(&self, row: usize) -> Option<&'r str> {
        if row >= self.size {
            return None;
        }
        // SAFETY: the mask, if there is one, has a bit for every row, and the data an element; both live as
        // long as the chunk. A varchar is UTF-8; what is not is shown as nothing rather than trusted.
        let bytes = unsafe {
            if !self.mask.is_null() && *self.mask.add(row / 64) >> (row % 64) & 1 == 0 {
                return None;
            }
            let element = &*self.data.add(row);
            let length = element.pointer.length as usize;
            let start = if length <= 12 {
                (&raw const element.inlined.1).cast::<u8>()
            } else {
                element.pointer.text
            };
            std::slice::from_raw_parts(start, length)
        };
        std::str::from_utf8(bytes).ok()
    }
}
