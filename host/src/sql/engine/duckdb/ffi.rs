//! The C interface of libduckdb 1.5, opened at run time, behind types that cannot be misused. All of the
//! engine's `unsafe` is here.
//!
//! Ownership follows the header: every object is destroyed once, by the `Drop` of the type that holds it,
//! and lives no longer than what it was made from (lifetimes below). Texts that a call gives are copied
//! before anything else is called.
//!
//! `filling` writes the rows of a table, `statement` is what runs, `rows` what that gives.

mod filling;
mod rows;
mod statement;

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libloading::Library;

pub(super) use filling::{Appender, Writer, WrittenType};
pub(super) use statement::{Prepared, ReadType, ResultColumn, Statements};

use rows::{RawResult, Rows};

type Idx = u64;
type Pointer = *mut c_void;
type Text = *const c_char;

/// Success of a call that gives a state.
const OK: i32 = 0;

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
    decimal_width(Pointer) -> u8;
    decimal_scale(Pointer) -> u8;
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
