//! The C interface of libduckdb 1.5, opened at run time, behind types that cannot be misused. All of the
//! engine's `unsafe` is here.
//!
//! Ownership follows the header: every object is destroyed once, by the `Drop` of the type that holds it,
//! and lives no longer than what it was made from (lifetimes below). Texts that a call gives are copied
//! before anything else is called.

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libloading::Library;

type Idx = u64;
type Pointer = *mut c_void;
type Text = *const c_char;

/// Success of a call that gives a state.
const OK: i32 = 0;
/// `DUCKDB_STATEMENT_TYPE_SELECT` and `…_CREATE`.
const SELECT: i32 = 1;
const CREATE: i32 = 7;

/// A `duckdb_result`: six words, of which only the library knows the meaning.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawResult([Pointer; 6]);

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

macro_rules! functions {
    ($($name:ident($($arg:ty),*) $(-> $out:ty)?;)*) => {
        /// The functions that are used, and the library they are in.
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $out)?,)*
            /// Open as long as a function can be called.
            _library: Library,
        }

        impl Functions {
            /// # Safety
            /// It is a libduckdb whose functions have these types (1.5 does).
            unsafe fn of(library: Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: the caller vouches for the type of the function.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $out)?>(
                            concat!("duckdb_", stringify!($name), "\0").as_bytes(),
                        )?
                    };
                )*
                Ok(Self { $($name,)* _library: library })
            }
        }
    };
}

functions! {
    create_config(*mut Pointer) -> i32;
    set_config(Pointer, Text, Text) -> i32;
    destroy_config(*mut Pointer);
    open_ext(Text, *mut Pointer, Pointer, *mut *mut c_char) -> i32;
    connect(Pointer, *mut Pointer) -> i32;
    disconnect(*mut Pointer);
    interrupt(Pointer);
    query(Pointer, Text, *mut RawResult) -> i32;
    destroy_result(*mut RawResult);
    result_error(*mut RawResult) -> Text;
    extract_statements(Pointer, Text, *mut Pointer) -> Idx;
    extract_statements_error(Pointer) -> Text;
    prepare_extracted_statement(Pointer, Pointer, Idx, *mut Pointer) -> i32;
    destroy_extracted(*mut Pointer);
    prepare_error(Pointer) -> Text;
    destroy_prepare(*mut Pointer);
    nparams(Pointer) -> Idx;
    prepared_statement_type(Pointer) -> i32;
    prepared_statement_column_count(Pointer) -> Idx;
    prepared_statement_column_name(Pointer, Idx) -> Text;
    prepared_statement_column_logical_type(Pointer, Idx) -> Pointer;
    get_type_id(Pointer) -> i32;
    logical_type_get_alias(Pointer) -> *mut c_char;
    logical_type_set_alias(Pointer, Text);
    create_logical_type(i32) -> Pointer;
    destroy_logical_type(*mut Pointer);
    execute_prepared(Pointer, *mut RawResult) -> i32;
    execute_prepared_streaming(Pointer, *mut RawResult) -> i32;
    fetch_chunk(RawResult) -> Pointer;
    create_data_chunk(*mut Pointer, Idx) -> Pointer;
    destroy_data_chunk(*mut Pointer);
    data_chunk_reset(Pointer);
    data_chunk_set_size(Pointer, Idx);
    data_chunk_get_size(Pointer) -> Idx;
    data_chunk_get_vector(Pointer, Idx) -> Pointer;
    vector_size() -> Idx;
    vector_get_data(Pointer) -> Pointer;
    vector_get_validity(Pointer) -> *mut u64;
    vector_ensure_validity_writable(Pointer);
    unsafe_vector_assign_string_element_len(Pointer, Idx, *const c_char, Idx);
    appender_create_ext(Pointer, Text, Text, Text, *mut Pointer) -> i32;
    append_data_chunk(Pointer, Pointer) -> i32;
    appender_close(Pointer) -> i32;
    appender_error(Pointer) -> Text;
    appender_destroy(*mut Pointer) -> i32;
    free(Pointer);
}

impl Functions {
    /// Opens the library, and looks at its version before anything else.
    fn load(path: &Path) -> Result<Self, String> {
        let named = path.to_string_lossy();
        let words = |error: libloading::Error| match std::error::Error::source(&error) {
            // The system's, with the file before them.
            Some(source) => source.to_string().replace(&*named, "the file"),
            None => error.to_string(),
        };
        // SAFETY: the file is the one that the user configured or installed as libduckdb.
        let library = unsafe { Library::new(path) }.map_err(words)?;
        // SAFETY: every version of libduckdb has this function; it takes nothing and gives a static text.
        let version = unsafe {
            let version = library.get::<unsafe extern "C" fn() -> Text>(c"duckdb_library_version");
            copied(version.map_err(words)?())
        };
        if !version.starts_with("v1.5.") {
            return Err(format!("this is DuckDB {version}; 1.5 is needed"));
        }
        // SAFETY: the version says so.
        unsafe { Self::of(library) }.map_err(words)
    }

    /// Copies a text that is ours to free.
    fn taken(&self, text: Text) -> String {
        let copy = copied(text);
        // SAFETY: the text was allocated by the library for us; null is allowed.
        unsafe { (self.free)(text.cast_mut().cast()) };
        copy
    }
}

/// Copies a text that the library keeps.
fn copied(text: Text) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: every text the library gives ends with a NUL, and is alive until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A C text; one with a NUL inside is an error.
fn c_text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| "a NUL character cannot stand in SQL".to_owned())
}

/// The type of a column that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenType {
    Boolean = 1,
    Bigint = 5,
    Double = 11,
    Varchar = 17,
    /// A varchar that is known to be JSON.
    Json,
}

/// The type of a result column, as far as writing it down goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadType {
    Boolean,
    /// Integers, decimals, floating point.
    Number,
    Json,
    /// Lists, structs, maps and the like.
    Nested,
    /// Everything whose text is its value.
    Text,
}

/// A database in memory; it is never closed.
pub(super) struct Database {
    api: Functions,
    raw: Pointer,
}

// SAFETY: the library allows connections to one database from any thread at any time; the functions are
// plain pointers.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Opens the library, and in it an empty database with these settings.
    pub(super) fn open(library: &Path, settings: &[(&str, String)]) -> Result<Self, String> {
        let api = Functions::load(library)?;
        let mut config = ptr::null_mut();
        let mut raw = ptr::null_mut();
        let mut error = ptr::null_mut();
        // SAFETY: all out pointers are valid; the configuration is destroyed below, once.
        let opened = unsafe {
            if (api.create_config)(&raw mut config) != OK {
                return Err("it cannot be configured".to_owned());
            }
            for (name, value) in settings {
                let (name_text, value_text) = (c_text(name)?, c_text(value)?);
                if (api.set_config)(config, name_text.as_ptr(), value_text.as_ptr()) != OK {
                    (api.destroy_config)(&raw mut config);
                    return Err(format!("it does not know the setting `{name}`"));
                }
            }
            let opened = (api.open_ext)(c":memory:".as_ptr(), &raw mut raw, config, &raw mut error);
            (api.destroy_config)(&raw mut config);
            opened
        };
        if opened != OK {
            return Err(api.taken(error));
        }
        Ok(Self { api, raw })
    }

    /// A connection of its own.
    pub(super) fn connect(self: &Arc<Self>) -> Result<Connection, String> {
        let mut raw = ptr::null_mut();
        // SAFETY: the database is open; the out pointer is valid.
        if unsafe { (self.api.connect)(self.raw, &raw mut raw) } != OK {
            return Err("no connection could be made".to_owned());
        }
        Ok(Connection { database: Arc::clone(self), raw })
    }
}

/// A connection; its temporary tables are seen by no other, and gone with it.
pub(super) struct Connection {
    database: Arc<Database>,
    raw: Pointer,
}

// SAFETY: a connection is bound to no thread.
unsafe impl Send for Connection {}

// SAFETY: the library locks a connection for each call on it, but for an interrupt, which it allows at any
// time.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: connected once, disconnected once; what was made from it is gone by its lifetime.
        unsafe { (self.database.api.disconnect)(&raw mut self.raw) };
    }
}

impl Connection {
    fn api(&self) -> &Functions {
        &self.database.api
    }

    /// Stops what the connection is doing on another thread.
    pub(super) fn interrupt(&self) {
        // SAFETY: the connection is open.
        unsafe { (self.api().interrupt)(self.raw) };
    }

    /// Runs a statement of ours.
    pub(super) fn execute(&self, sql: &str) -> Result<(), String> {
        let sql = c_text(sql)?;
        let mut result =
            Rows { api: self.api(), raw: RawResult([ptr::null_mut(); 6]), phantom: PhantomData };
        // SAFETY: the text ends with a NUL; the result is destroyed by its `Drop`, failed or not.
        let state = unsafe { (self.api().query)(self.raw, sql.as_ptr(), &raw mut result.raw) };
        if state == OK { Ok(()) } else { Err(result.error()) }
    }

    /// The texts of the first column of a statement of ours, which must be a varchar.
    pub(super) fn texts(&self, sql: &str) -> Result<Vec<String>, String> {
        let statements = self.statements(sql)?;
        let prepared = statements.prepare(0)?;
        let mut rows = prepared.stream()?;
        let mut out = Vec::new();
        while let Some(chunk) = rows.chunk()? {
            let texts = chunk.column(0);
            out.extend((0..chunk.size).filter_map(|row| texts.get(row).map(str::to_owned)));
        }
        Ok(out)
    }

    /// Parses a text into its statements.
    pub(super) fn statements(&self, sql: &str) -> Result<Statements<'_>, String> {
        let sql = c_text(sql)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the text ends with a NUL; the statements are destroyed by their `Drop`, failed or not.
        let count =
            unsafe { (self.api().extract_statements)(self.raw, sql.as_ptr(), &raw mut raw) };
        let statements = Statements { connection: self, raw, count };
        if count == 0 {
            // SAFETY: the statements are alive; null is given back for an empty text.
            let error = copied(unsafe { (self.api().extract_statements_error)(raw) });
            return Err(if error.is_empty() { "there is no statement".to_owned() } else { error });
        }
        Ok(statements)
    }

    /// Begins to fill an empty table of ours.
    pub(super) fn append(
        &self,
        table: &str,
        types: Vec<WrittenType>,
    ) -> Result<Appender<'_>, String> {
        let name = c_text(table)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the texts end with a NUL; the appender is destroyed by its `Drop`, failed or not.
        let state = unsafe {
            (self.api().appender_create_ext)(
                self.raw,
                c"temp".as_ptr(),
                c"main".as_ptr(),
                name.as_ptr(),
                &raw mut raw,
            )
        };
        let chunk = Writer::new(self.api(), types);
        let appender = Appender { api: self.api(), raw, chunk };
        appender.done(state)?;
        Ok(appender)
    }
}

/// A table that is being filled.
pub(super) struct Appender<'c> {
    api: &'c Functions,
    raw: Pointer,
    chunk: Writer<'c>,
}

impl<'c> Appender<'c> {
    /// Adds rows; `write` is asked for each cell.
    pub(super) fn append(
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
    pub(super) fn close(self) -> Result<(), String> {
        // SAFETY: the appender is alive.
        self.done(unsafe { (self.api.appender_close)(self.raw) })
    }

    fn done(&self, state: i32) -> Result<(), String> {
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
pub(super) struct Writer<'c> {
    api: &'c Functions,
    raw: Pointer,
    types: Vec<WrittenType>,
    capacity: usize,
    vectors: Vec<Pointer>,
    /// Column and row of the cell that is written next.
    at: (usize, usize),
}

impl<'c> Writer<'c> {
    fn new(api: &'c Functions, types: Vec<WrittenType>) -> Self {
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

    pub(super) fn integer(&mut self, value: i64) {
        self.cell(WrittenType::Bigint, value);
    }

    pub(super) fn double(&mut self, value: f64) {
        self.cell(WrittenType::Double, value);
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.cell(WrittenType::Boolean, u8::from(value));
    }

    /// A text, or the text of a JSON value.
    pub(super) fn text(&mut self, value: &str) {
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

    pub(super) fn null(&mut self) {
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

/// The statements of a text.
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    raw: Pointer,
    count: Idx,
}

impl Drop for Statements<'_> {
    fn drop(&mut self) {
        // SAFETY: extracted once, destroyed once.
        unsafe { (self.connection.api().destroy_extracted)(&raw mut self.raw) };
    }
}

impl Statements<'_> {
    /// How many there are; at least one.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Prepares one of them.
    pub(super) fn prepare(&self, at: u64) -> Result<Prepared<'_>, String> {
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
pub(super) struct Prepared<'c> {
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
    pub(super) fn is_select(&self) -> bool {
        // SAFETY: the statement is alive.
        unsafe { (self.api.prepared_statement_type)(self.raw) == SELECT }
    }

    pub(super) fn is_create(&self) -> bool {
        // SAFETY: the statement is alive.
        unsafe { (self.api.prepared_statement_type)(self.raw) == CREATE }
    }

    /// How many values it waits for.
    pub(super) fn params(&self) -> u64 {
        // SAFETY: the statement is alive.
        unsafe { (self.api.nparams)(self.raw) }
    }

    /// Names and types of its columns.
    pub(super) fn columns(&self) -> Vec<(String, ReadType)> {
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
                let read = self.read_type(raw);
                // SAFETY: given once, destroyed once.
                unsafe { (self.api.destroy_logical_type)(&raw mut raw) };
                (name, read)
            })
            .collect()
    }

    fn read_type(&self, raw: Pointer) -> ReadType {
        // SAFETY: the type is alive; the alias is ours to free.
        let (id, alias) =
            unsafe { ((self.api.get_type_id)(raw), (self.api.logical_type_get_alias)(raw)) };
        let alias = self.api.taken(alias);
        match id {
            1 => ReadType::Boolean,
            // TINYINT … DOUBLE, HUGEINT, DECIMAL, UHUGEINT, BIGNUM.
            2..=11 | 16 | 19 | 32 | 35 => ReadType::Number,
            17 if alias == "JSON" => ReadType::Json,
            // LIST, STRUCT, MAP, UNION, ARRAY, VARIANT.
            24..=26 | 28 | 33 | 41 => ReadType::Nested,
            _ => ReadType::Text,
        }
    }

    /// Runs it for its effect on the connection.
    pub(super) fn execute(&self) -> Result<(), String> {
        self.run(self.api.execute_prepared).map(drop)
    }

    /// Runs it; rows come as they are fetched.
    pub(super) fn stream(&self) -> Result<Rows<'_>, String> {
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

/// The rows of a statement.
pub(super) struct Rows<'c> {
    api: &'c Functions,
    raw: RawResult,
    phantom: PhantomData<&'c ()>,
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { (self.api.destroy_result)(&raw mut self.raw) };
    }
}

impl Rows<'_> {
    fn error(&mut self) -> String {
        // SAFETY: the result is alive.
        copied(unsafe { (self.api.result_error)(&raw mut self.raw) })
    }

    /// The next rows; `None` when there are no more.
    pub(super) fn chunk(&mut self) -> Result<Option<Chunk<'_>>, String> {
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
pub(super) struct Chunk<'r> {
    api: &'r Functions,
    raw: Pointer,
    pub(super) size: usize,
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
    pub(super) fn column(&self, at: usize) -> Texts<'_> {
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
pub(super) struct Texts<'r> {
    data: *const RawText,
    mask: *const u64,
    size: usize,
    phantom: PhantomData<&'r ()>,
}

impl<'r> Texts<'r> {
    /// The text in a row; `None` for null.
    pub(super) fn get(&self, row: usize) -> Option<&'r str> {
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
