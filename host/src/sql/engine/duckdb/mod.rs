//! The duckdb engine: one database in memory, locked down when it is opened; a connection and temporary tables per
//! statement.
//!
//! libduckdb is opened on the first statement, from `DUCKDB_LIB_DIR` or from where [`install`] puts it, in a process of
//! its own: what a statement makes of that ends no host.
//!
//! - `process` is that process as the host sees it, `serve` its inside, `wire` what they say to each other.
//! - `session` is one statement; `opened` the database, `denied` and `syntax` what is told of a statement before it
//!   runs, `cells` the rows that it reads and `result` those that it gives.
//! - `ffi` is the library.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Engine, Outcome, Query};
use crate::program;
use crate::sql::error::SqlError;
use crate::sql::feed::Feed;
use crate::sql::lexer::Dialect;
use crate::sql::limits::Limits;
use crate::sql::table::Table;

mod cells;
mod denied;
mod ffi;
pub mod install;
mod opened;
mod process;
mod result;
mod serve;
mod session;
mod syntax;
mod wire;

use opened::Opened;
use process::Processes;
use session::Session;

pub(crate) use serve::serve;

/// DuckDB, opened at run time.
pub struct DuckDb {
    library: PathBuf,
    limits: Limits,
    processes: Processes,
    /// In a process that is not the host, and so cannot start another one.
    here: Mutex<Option<Arc<Opened>>>,
}

impl DuckDb {
    /// With the library at this place; nothing is opened before the first statement.
    #[must_use]
    pub fn new(library: PathBuf, limits: Limits) -> Self {
        Self { library, limits, processes: Processes::default(), here: Mutex::default() }
    }

    /// The database of this process, opened if it is not yet.
    fn here(&self) -> Result<Arc<Opened>, SqlError> {
        let mut slot = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*slot {
            return Ok(Arc::clone(opened));
        }
        let opened = Opened::open(&self.library, self.limits.memory)?;
        Ok(Arc::clone(slot.insert(Arc::new(opened))))
    }

    fn run_here(&self, query: &Query<'_>) -> Result<Outcome, SqlError> {
        let opened = self.here()?;
        let session = Session::begin(&opened, query)?;
        if let Some(wants) = session.wants() {
            return Ok(Outcome::Wants(wants));
        }
        for (name, feed) in query.tables {
            let table = read_of(feed)?;
            let mut filling = session.table(name, table.columns())?;
            for bytes in cells::blocks(table) {
                let block = cells::Block::of(&bytes, table.columns().len());
                let unread = || SqlError::Engine("rows of a table cannot be read".to_owned());
                filling.add(&block.ok_or_else(unread)?)?;
            }
            filling.end()?;
        }
        session.answer().map(Outcome::Answer)
    }
}

/// The rows that a statement reads of a table: all, or those of the one part that it asked for.
fn read_of(feed: &Feed) -> Result<&Table, SqlError> {
    match feed {
        Feed::Whole(table) => Ok(table),
        Feed::Parts(parts) => match &parts.known[..] {
            [(_, table)] => Ok(table),
            _ => Err(SqlError::Engine("a table was read by halves".to_owned())),
        },
    }
}

impl Engine for DuckDb {
    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn run(&self, query: &Query<'_>) -> Result<Outcome, SqlError> {
        if !self.library.is_file() {
            return Err(SqlError::Engine(
                "the duckdb engine was chosen but libduckdb is not there; run `udf-host sql install-duckdb`, \
                 or name its folder in DUCKDB_LIB_DIR"
                    .to_owned(),
            ));
        }
        match program::own() {
            Some(program) => self.processes.run((&program, &self.library), query),
            None => self.run_here(query),
        }
    }
}
