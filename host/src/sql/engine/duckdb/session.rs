//! [`Session`]: one statement in a database of this process, from its text to its rows.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::cells::Block;
use super::ffi::{Appender, Connection, Prepared, ResultColumn, WrittenType};
use super::opened::{Looked, Opened};
use super::result::{around, write};
use crate::sql::answer::{Answer, Rows};
use crate::sql::engine::{Query, explain};
use crate::sql::error::SqlError;
use crate::sql::feed::Wants;
use crate::sql::limits::Limits;
use crate::sql::table::{Column, Kind};

/// Bytes of stack for a statement.
pub(super) const STACK: usize = 32 << 20;

/// How long after its time a statement may take to end.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// A statement that may be run.
pub(super) struct Session<'q> {
    query: &'q Query<'q>,
    connection: Arc<Connection>,
    looked: Arc<Looked>,
    /// What it has left of its time.
    left: Duration,
}

impl<'q> Session<'q> {
    /// Looks at the statement.
    ///
    /// # Errors
    /// What it is refused for.
    pub(super) fn begin(opened: &Arc<Opened>, query: &'q Query<'q>) -> Result<Self, SqlError> {
        let began = Instant::now();
        let connection = Arc::new(opened.connect()?);
        let time = query.limits.time;
        let looked = match opened.known(query.sql) {
            Some(looked) => looked,
            None => {
                let (opened, sql) = (Arc::clone(opened), query.sql.to_owned());
                within(time, query, &connection, move |connection| opened.look(connection, &sql))?
            }
        };
        Ok(Self { query, connection, looked, left: time.saturating_sub(began.elapsed()) })
    }

    /// What must be read before it can run. Of the query's tables only columns and parts are looked at.
    pub(super) fn wants(&self) -> Option<Wants> {
        self.looked.syntax.wants(self.query.tables)
    }

    /// A temporary table of this name, for the rows of an operation.
    ///
    /// # Errors
    /// The database refuses it.
    pub(super) fn table(&self, name: &str, columns: &[Column]) -> Result<Filling<'_>, SqlError> {
        let create = || -> Result<Filling<'_>, String> {
            let mut create = format!("CREATE TEMP TABLE \"{name}\"(");
            let mut types = Vec::with_capacity(columns.len());
            for (at, column) in columns.iter().enumerate() {
                let (sql, written) = match column.kind {
                    Kind::Text => ("VARCHAR", WrittenType::Varchar),
                    Kind::Integer => ("BIGINT", WrittenType::Bigint),
                    Kind::Double => ("DOUBLE", WrittenType::Double),
                    Kind::Boolean => ("BOOLEAN", WrittenType::Boolean),
                    // A number as it is written.
                    Kind::Json if column.sql_type.is_some() => ("VARCHAR", WrittenType::Varchar),
                    Kind::Json => ("JSON", WrittenType::Json),
                };
                types.push(written);
                let comma = if at > 0 { "," } else { "" };
                // What its cells are is turned into it as they are added.
                let sql = column.sql_type.as_deref().unwrap_or(sql);
                let name = column.name.replace('"', "\"\"");
                create.push_str(&format!("{comma}\"{name}\" {sql}"));
            }
            create.push(')');
            self.connection.execute(&create)?;
            let appender = self.connection.append(name, types)?;
            Ok(Filling { appender, query: self.query })
        };
        create().map_err(|message| Stop::Engine(message).explain(self.query, None))
    }

    /// Runs it.
    ///
    /// # Errors
    /// Whatever is wrong with it, or that it takes too much.
    pub(super) fn answer(self) -> Result<Answer, SqlError> {
        let (sql, looked) = (self.query.sql.to_owned(), Arc::clone(&self.looked));
        let (limits, keep) = (self.query.limits.clone(), self.query.keep);
        // What the rows take to get there is not the statement's time.
        within(self.left, self.query, &self.connection, move |connection| {
            answer(connection, &sql, &looked, (&limits, keep))
        })
    }
}

/// A table that is being filled.
pub(super) struct Filling<'s> {
    appender: Appender<'s>,
    query: &'s Query<'s>,
}

impl Filling<'_> {
    /// Adds rows.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn add(&mut self, block: &Block<'_>) -> Result<(), SqlError> {
        let added = self.appender.append(block.rows(), |writer, row, column| {
            block.write(row, column, writer);
        });
        added.map_err(|message| Stop::Engine(message).explain(self.query, None))
    }

    /// All rows are there.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn end(self) -> Result<(), SqlError> {
        let query = self.query;
        self.appender.close().map_err(|message| Stop::Engine(message).explain(query, None))
    }
}

/// Does a part of a statement's work on a thread of its own, for so long at most: DuckDB parses and plans by recursion,
/// deeper than the stack of a thread of the runtime.
fn within<T: Send + 'static>(
    time: Duration,
    query: &Query<'_>,
    connection: &Arc<Connection>,
    work: impl FnOnce(&Connection) -> Result<T, Stop> + Send + 'static,
) -> Result<T, SqlError> {
    let deadline = Instant::now() + time;
    let (done, waiting) = channel();
    let job = {
        let connection = Arc::clone(connection);
        move || {
            // Nobody listens any more after a time-out.
            let _ = done.send(work(&connection));
        }
    };
    std::thread::Builder::new()
        .name("duckdb".to_owned())
        .stack_size(STACK)
        .spawn(job)
        .map_err(|error| SqlError::Engine(format!("no thread for the statement: {error}")))?;
    let mut wait = time;
    loop {
        match waiting.recv_timeout(wait) {
            Ok(outcome) => return outcome.map_err(|stop| stop.explain(query, Some(deadline))),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(SqlError::Engine("the statement ended without a result".to_owned()));
            }
            // While it plans, DuckDB hears no interrupt: the thread ends by itself some time.
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline + GRACE => {
                return Err(SqlError::Timeout(query.limits.time));
            }
            // An interrupt between two steps of a statement is lost, so it is repeated.
            Err(RecvTimeoutError::Timeout) => {
                connection.interrupt();
                wait = Duration::from_millis(10);
            }
        }
    }
}

/// Why a statement stopped.
pub(super) enum Stop {
    /// DuckDB says so.
    Engine(String),
    /// We do.
    Sql(SqlError),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Engine(message)
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl Stop {
    fn explain(self, query: &Query<'_>, deadline: Option<Instant>) -> SqlError {
        let message = match self {
            Self::Sql(error) => return error,
            Self::Engine(message) => message,
        };
        let memory = query.limits.memory >> 20;
        if message.starts_with("INTERRUPT")
            || message.contains("Interrupted!") && deadline.is_some_and(|at| Instant::now() >= at)
        {
            return SqlError::Timeout(query.limits.time);
        }
        if message.starts_with("Out of Memory") {
            return SqlError::refused(format!(
                "the statement needs more than {memory} MiB of memory; narrow it, or add a LIMIT"
            ));
        }
        let mut words = explain(&message, query);
        if words.contains("Malformed JSON") {
            words.push_str("; a JSON value is compared as JSON, its text is taken with `->>`");
        }
        SqlError::Refused(words)
    }
}

fn answer(
    connection: &Connection,
    sql: &str,
    looked: &Looked,
    (limits, keep): (&Limits, Option<usize>),
) -> Result<Answer, Stop> {
    let pivot = looked.pivot;
    // The text as it is, so that nothing in it can end the statement around it.
    let statements = connection.statements(sql)?;
    if pivot {
        prelude(&statements.prepare(0)?)?;
    }
    let prepared = statements.prepare(statements.count() - 1)?;
    check(&prepared)?;
    let columns = prepared.columns();
    // What is no SELECT but becomes one, such as a PRAGMA, is refused by the statement around it.
    let select = looked.syntax.text().is_some();
    if select && columns.iter().all(ResultColumn::is_stored_as_text) {
        return taken(&prepared, columns, (limits, keep));
    }
    drop(prepared);
    let around = around(sql, &columns);
    let statements = connection.statements(&around)?;
    if statements.count() == 2 && pivot {
        prelude(&statements.prepare(0)?)?;
    } else if statements.count() != 1 {
        return Err(SqlError::refused("only one statement can be run").into());
    }
    let prepared = statements.prepare(statements.count() - 1)?;
    check(&prepared)?;
    taken(&prepared, columns, (limits, keep))
}

/// The rows of a statement whose columns are all stored as texts.
fn taken(
    prepared: &Prepared<'_>,
    columns: Vec<ResultColumn>,
    (limits, keep): (&Limits, Option<usize>),
) -> Result<Answer, Stop> {
    let declared = columns.iter().map(|column| column.declared.clone()).collect();
    let mut out = Rows::new(declared, limits, keep);
    let mut rows = prepared.stream()?;
    while let Some(chunk) = rows.chunk()? {
        let texts = (0..columns.len()).map(|at| chunk.column(at)).collect::<Vec<_>>();
        for row in 0..chunk.size {
            if !out.begin()? {
                return Ok(out.finish());
            }
            for (texts, ResultColumn { read, .. }) in texts.iter().zip(&columns) {
                let text = texts.get(row);
                out.cell(text.map_or(0, str::len), |out| write(text, *read, out))?;
            }
            out.end();
        }
    }
    Ok(out.finish())
}

/// One statement that returns rows and waits for no values.
fn check(prepared: &Prepared<'_>) -> Result<(), SqlError> {
    if !prepared.is_select() {
        return Err(SqlError::refused(
            "only a statement that returns rows (SELECT, FROM, WITH, VALUES, PIVOT) can be run; nothing can be changed or set",
        ));
    }
    if prepared.params() > 0 {
        return Err(SqlError::refused(
            "a parameter is written `$name`, with its value in `params`; `?` and `$1` are not known",
        ));
    }
    Ok(())
}

/// A PIVOT without an IN list is two statements to DuckDB: a type of the values it finds, made for this
/// connection alone, then the SELECT.
fn prelude(prepared: &Prepared<'_>) -> Result<(), Stop> {
    if !prepared.is_create() {
        return Err(SqlError::refused("only one statement can be run").into());
    }
    Ok(prepared.execute()?)
}
