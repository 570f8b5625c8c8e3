//! [`Opened`]: a database in memory, locked down when it is opened; one per process.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::denied::{self, Denied};
use super::ffi::{Connection, Database};
use super::result::has_semicolon;
use super::session::Stop;
use super::syntax::Syntax;
use crate::sql::error::SqlError;

/// The database, and what cannot be called in it.
pub(super) struct Opened {
    database: Arc<Database>,
    denied: Denied,
    /// The text that was looked at last. A statement that wants rows comes back with them.
    last: Mutex<Option<(String, Arc<Looked>)>>,
}

/// What a text says that may be run.
pub(super) struct Looked {
    /// Whether it is a PIVOT, which is two statements to DuckDB.
    pub(super) pivot: bool,
    pub(super) syntax: Syntax,
}

impl Opened {
    /// Opens the library and a database that may take so many bytes.
    ///
    /// # Errors
    /// The file is no libduckdb of the version that is known here, or the database refuses a setting.
    pub(super) fn open(library: &Path, memory: usize) -> Result<Self, SqlError> {
        let settings = [
            ("memory_limit", format!("{memory}B")),
            // Nothing is written to disk, ours or the user's.
            ("temp_directory", String::new()),
            ("enable_external_access", "false".to_owned()),
            ("autoinstall_known_extensions", "false".to_owned()),
            ("autoload_known_extensions", "false".to_owned()),
            ("allow_community_extensions", "false".to_owned()),
            ("lock_configuration", "true".to_owned()),
        ];
        let open = || -> Result<Self, String> {
            let database = Arc::new(Database::open(library, &settings)?);
            let connection = database.connect()?;
            for guard in denied::GUARDS {
                connection.execute(guard)?;
            }
            let denied = Denied::of(&connection)?;
            Ok(Self { database, denied, last: Mutex::default() })
        };
        open().map_err(|error| {
            SqlError::Engine(format!("libduckdb cannot be used: {}", first_line(&error)))
        })
    }

    pub(super) fn connect(&self) -> Result<Connection, SqlError> {
        self.database.connect().map_err(SqlError::Engine)
    }

    /// Whether another statement can run in it. After a fault inside of DuckDB none can.
    pub(super) fn is_sound(&self) -> bool {
        self.database.connect().and_then(|connection| connection.execute("SELECT 1")).is_ok()
    }

    /// What was seen in a text, if it is the one that was looked at last.
    pub(super) fn known(&self, sql: &str) -> Option<Arc<Looked>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(text, _)| text == sql).map(|(_, looked)| Arc::clone(looked))
    }

    /// Refuses a text of several statements, or one that calls what may not be called.
    pub(super) fn look(&self, connection: &Connection, sql: &str) -> Result<Arc<Looked>, Stop> {
        let statements = connection.statements(sql)?.count();
        let pivot = statements == 2 && !has_semicolon(sql);
        if statements > 1 && !pivot {
            return Err(SqlError::refused("only one statement can be run").into());
        }
        let syntax = Syntax::of(connection, sql);
        self.denied.check(&syntax, sql)?;
        let looked = Arc::new(Looked { pivot, syntax });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((sql.to_owned(), Arc::clone(&looked)));
        Ok(looked)
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
