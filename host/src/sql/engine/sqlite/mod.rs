//! The sqlite engine: an in-memory database per statement, with nothing in it.
//!
//! Tables are virtual ones over the records (`records`), so that no row is copied before it is read.
//! What a statement may do is decided by SQLite's own authorizer, limits and settings. Which result
//! columns hold JSON or booleans is told by the column they originate from, through subqueries and
//! common table expressions.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use json_text::Specials;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Statement};
use rustix::time::{ClockId, clock_gettime};

use super::{Engine, Outcome, Query, explain};
use crate::sql::answer::Rows;
use crate::sql::error::{SqlError, names};
use crate::sql::feed::{Feed, Wants};
use crate::sql::lexer::{Dialect, Piece, split};
use crate::sql::limits::Limits;
use crate::sql::table::{Declared, Kind, compact};

mod functions;
mod records;
mod translate;

use translate::Translated;

/// Instructions of SQLite's machine between two looks at the clock.
const STEPS_BETWEEN_CHECKS: i32 = 2_000;

/// How deep expressions may nest. SQLite's parser keeps its own stack, the code generator recurses.
const EXPRESSION_DEPTH: i32 = 500;

/// Columns that a table of SQLite may have.
const MOST_COLUMNS: usize = 2_000;

/// A statement that worked so long before it asked for rows is not run for each part anew.
const LONG_ATTEMPT: Duration = Duration::from_millis(20);

/// SQLite, part of the binary.
#[derive(Debug, Default)]
pub struct Sqlite;

/// What the statement that runs needs to go on; the first wish counts.
#[derive(Debug, Clone, Default)]
struct Wanted(Arc<Mutex<Option<Wants>>>);

impl Wanted {
    fn put(&self, wants: Wants) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(wants);
    }

    fn take(&self) -> Option<Wants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Set when the tables of a statement are to be read in their own order, by no index.
type Scanned = Arc<AtomicBool>;

/// Statements that run now. SQLite counts the memory of the whole process; a statement that ran out
/// of it beside others is tried once more by itself, so that none fails for another's appetite.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static ALONE: RwLock<()> = RwLock::new(());

/// Why a statement stopped.
enum Fault {
    /// For good.
    Sql(SqlError),
    /// No memory was left.
    Memory,
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl Engine for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&self, query: &Query<'_>) -> Result<Outcome, SqlError> {
        let began = thread_time();
        let (mut outcome, beside) = {
            let _shared = ALONE.read().unwrap_or_else(PoisonError::into_inner);
            let beside = RUNNING.fetch_add(1, Ordering::Relaxed);
            let outcome = attempt(query);
            (outcome, RUNNING.fetch_sub(1, Ordering::Relaxed) > 1 || beside > 0)
        };
        if beside && matches!(outcome, Err(Fault::Memory)) {
            let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
            outcome = attempt(query);
        }
        if matches!(outcome, Ok(Outcome::Wants(_)))
            && thread_time().saturating_sub(began) > LONG_ATTEMPT
        {
            return Ok(Outcome::WantsAll);
        }
        outcome.map_err(|fault| match fault {
            Fault::Sql(error) => error,
            Fault::Memory => SqlError::refused(format!(
                "the statement needs more than {} MiB of memory; narrow it, or add a LIMIT",
                query.limits.memory >> 20
            )),
        })
    }
}

/// What this thread has computed: waiting for a core is no work.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn attempt(query: &Query<'_>) -> Result<Outcome, Fault> {
    let deadline = Instant::now() + query.limits.time.saturating_sub(query.spent);
    let columns = query.tables.iter().map(|(_, feed)| feed.columns().len()).max().unwrap_or(0);
    if columns > MOST_COLUMNS {
        let message = format!(
            "an answer has {columns} columns, and the sqlite engine has room for {MOST_COLUMNS}"
        );
        return Err(SqlError::refused(message).into());
    }
    let mut connection = open(query.limits).map_err(|error| fault(&error, query))?;
    let wanted = Wanted::default();
    let scanned = Scanned::default();
    let setup = |connection: &mut Connection| -> rusqlite::Result<Arc<Mutex<Option<String>>>> {
        functions::register(connection, deadline)?;
        for (at, (name, feed)) in query.tables.iter().enumerate() {
            records::register(connection, name, at, feed, (&wanted, &scanned))?;
        }
        connection
            .progress_handler(STEPS_BETWEEN_CHECKS, Some(move || Instant::now() > deadline))?;
        guard(connection, query, &wanted)
    };
    let denied = setup(&mut connection).map_err(|error| fault(&error, query))?;
    scanned.store(gives_rows_by_terms(&connection, query.sql), Ordering::Relaxed);
    let translated;
    let mistaken = translate::mistaken(query.sql);
    let (mut statement, own_kinds) = match connection.prepare(query.sql) {
        Ok(statement) if mistaken.is_none() => (statement, None),
        outcome => {
            if let Some(reason) = denied.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(SqlError::refused(reason).into());
            }
            translated = understood(&connection, query, deadline)
                .ok_or_else(|| not_understood(outcome.map(drop), mistaken, query))?;
            scanned.store(gives_rows_by_terms(&connection, &translated.sql), Ordering::Relaxed);
            // What the statement wanted that is not run.
            wanted.take();
            let statement =
                connection.prepare(&translated.sql).map_err(|error| fault(&error, query))?;
            (statement, Some(&translated.kinds))
        }
    };
    check(&statement)?;
    if let Some(wants) = wanted.take() {
        return Ok(Outcome::Wants(wants));
    }
    let mut kinds = own_kinds.cloned().unwrap_or_else(|| kinds(&statement, query));
    let compound = own_kinds.is_none() && is_compound(query.sql);
    if compound && kinds.contains(&Some(Kind::Boolean)) {
        // SQLite tells of the first arm alone; an integer of another one is no boolean. What the others are is known
        // of a statement that can be translated.
        let of_all = translate::translate(query).ok().map(|translated| translated.kinds);
        for (kind, of_all) in kinds.iter_mut().zip(of_all.into_iter().flatten()) {
            *kind = kind.filter(|kind| *kind != Kind::Boolean || of_all == Some(Kind::Boolean));
        }
    }
    // The arms of a compound may mix: there a cell is JSON only if it can be.
    let mixed = compound && kinds.contains(&Some(Kind::Json));
    let columns = statement.column_names().zip(&kinds);
    // Which cells of a mixed column are JSON is told one by one.
    let known = |kind: &Kind| !mixed || *kind != Kind::Json;
    let columns = columns.map(|(name, kind)| Declared::new(name, kind.filter(known)));
    let mut out = Rows::new(columns.collect(), query.limits, query.keep);
    let mut rows = statement.query([]).map_err(|error| fault(&error, query))?;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => {
                return wanted.take().map(Outcome::Wants).ok_or_else(|| fault(&error, query));
            }
        };
        if !out.begin()? {
            break;
        }
        for (at, kind) in kinds.iter().enumerate() {
            let value = row.get_ref(at).map_err(|error| fault(&error, query))?;
            let size = match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
            };
            if let (ValueRef::Real(_), Some(Kind::Integer), true) =
                (value, kind, own_kinds.is_some())
            {
                return Err(
                    SqlError::refused("an integer of the result does not fit 64 bits").into()
                );
            }
            out.cell(size, |text| write(value, *kind, mixed, text))?;
        }
        out.end();
    }
    Ok(Outcome::Answer(out.finish()))
}

/// The statement in SQLite's language, if it is in a part of DuckDB's that is known.
fn understood(connection: &Connection, query: &Query<'_>, deadline: Instant) -> Option<Translated> {
    let translated = translate::translate(query).ok()?;
    functions::register_translated(connection, deadline).ok()?;
    connection.prepare(&translated.sql).is_ok().then_some(translated)
}

/// Why a statement cannot be run: SQLite's words, or what it would misread.
fn not_understood(
    outcome: rusqlite::Result<()>,
    mistaken: Option<&str>,
    query: &Query<'_>,
) -> Fault {
    const OTHER: &str = "what only DuckDB has may need `--sql-engine duckdb`";
    let error = match (outcome, mistaken) {
        (Err(error), _) => fault(&error, query),
        (Ok(()), what) => {
            let what = what.unwrap_or("the statement");
            SqlError::refused(format!(
                "{what} would mean something else to the sqlite engine; {OTHER}"
            ))
            .into()
        }
    };
    match error {
        Fault::Sql(SqlError::Refused(message)) if is_about_language(&message) => {
            Fault::Sql(SqlError::Refused(format!("{message}; {OTHER}")))
        }
        other => other,
    }
}

/// Whether SQLite's message is about words that it does not know.
fn is_about_language(message: &str) -> bool {
    ["syntax error", "unrecognized token", "incomplete input", "no such function"]
        .iter()
        .any(|words| message.contains(words))
}

/// Whether SQLite would look up the terms of an `OR` one after the other: the rows would come in the terms' order, where
/// those of a scan come in the operation's (the SQL contract §5).
fn gives_rows_by_terms(connection: &Connection, sql: &str) -> bool {
    if !has_word(sql, &["or"]) {
        return false;
    }
    let plan = || -> rusqlite::Result<bool> {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        let mut steps = plan.query([])?;
        while let Some(step) = steps.next()? {
            if step.get_ref(3)?.as_str().is_ok_and(|detail| detail == "MULTI-INDEX OR") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    // What cannot be explained is refused with its reason when it is prepared.
    plan().unwrap_or(false)
}

/// An empty database in memory, closed down.
fn open(limits: &Limits) -> rusqlite::Result<Connection> {
    static HEAP: OnceLock<()> = OnceLock::new();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_MEMORY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_in_memory_with_flags(flags)?;
    if HEAP.get().is_none() {
        // Holds for the process; beyond it SQLite reports that memory is out, and survives.
        connection
            .query_row(&format!("PRAGMA hard_heap_limit = {}", limits.memory), [], |_| Ok(()))?;
        HEAP.get_or_init(|| ());
    }
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    for (setting, on) in [
        // `"name"` that is no column is an error, never a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    let length = i32::try_from(limits.memory).unwrap_or(i32::MAX);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, length),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    Ok(connection)
}

/// Lets a statement select, and nothing else. What is denied first is kept for the message.
fn guard(
    connection: &mut Connection,
    query: &Query<'_>,
    wanted: &Wanted,
) -> rusqlite::Result<Arc<Mutex<Option<String>>>> {
    let denied = Arc::new(Mutex::new(None));
    let reason = Arc::clone(&denied);
    let tables = query.tables.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let parts = |(_, feed): &(String, Feed)| matches!(feed, Feed::Parts(_));
    let by_parts = query.tables.iter().map(parts).collect::<Vec<_>>();
    let wanted = wanted.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let refused = match context.action {
            AuthAction::Select | AuthAction::Recursive => None,
            AuthAction::Read { table_name, column_name } => {
                let at = tables.iter().position(|name| name.eq_ignore_ascii_case(table_name));
                // A row's number is its place among all.
                if let Some(table) = at.filter(|at| by_parts[*at] && column_name == "ROWID") {
                    wanted.put(Wants { table, part: None });
                }
                read(&tables, table_name, column_name)
            }
            AuthAction::Function { function_name } => functions::is_denied(function_name)
                .then(|| format!("the function `{function_name}` is not available here")),
            _ => Some("only one statement that returns rows (SELECT, WITH, VALUES) can be run; nothing can be changed or set".to_owned()),
        };
        match refused {
            None => Authorization::Allow,
            Some(message) => {
                reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
                Authorization::Deny
            }
        }
    }))?;
    Ok(denied)
}

/// Why a table cannot be read, if it cannot.
fn read(tables: &[String], table: &str, column: &str) -> Option<String> {
    let known = tables.iter().any(|name| name.eq_ignore_ascii_case(table))
        || matches!(table, "json_each" | "json_tree");
    // Without a column it may be the name of a common table expression, too.
    let own = column.is_empty()
        && !["sqlite_", "pragma_", "dbstat", "bytecode", "tables_used"].iter().any(|prefix| {
            table.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
        });
    (!known && !own).then(|| format!("`{table}` cannot be read; the only tables are answers of operations, written `{{{{operation}}}}`"))
}

/// One statement that returns rows and changes nothing.
fn check(statement: &Statement<'_>) -> Result<(), SqlError> {
    if statement.column_count() == 0 || !statement.readonly() || statement.is_explain() != 0 {
        return Err(SqlError::refused(
            "only a statement that returns rows (SELECT, WITH, VALUES) can be run",
        ));
    }
    if statement.parameter_count() > 0 {
        return Err(SqlError::refused(
            "a parameter is written `$name`, with its value in `params`; `?`, `:name`, `@name` and `$1` are not known",
        ));
    }
    Ok(())
}

/// The types of the result columns that come straight from a column of a table.
fn kinds(statement: &Statement<'_>, query: &Query<'_>) -> Vec<Option<Kind>> {
    statement
        .columns_with_metadata()
        .map(|column| {
            let (Some(table), Some(origin)) = (column.table_name(), column.origin_name()) else {
                return None;
            };
            let (_, table) =
                query.tables.iter().find(|(name, _)| name.eq_ignore_ascii_case(table))?;
            Some(table.columns().iter().find(|column| column.name == origin)?.kind)
        })
        .collect()
}

fn is_compound(sql: &str) -> bool {
    has_word(sql, &["union", "except", "intersect"])
}

/// Whether one of the words stands in the statement's code.
fn has_word(sql: &str, words: &[&str]) -> bool {
    split(sql, Dialect::Sqlite).0.iter().any(|piece| match piece {
        Piece::Code(text) => text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| words.iter().any(|other| word.eq_ignore_ascii_case(other))),
        _ => false,
    })
}

fn write(value: ValueRef<'_>, kind: Option<Kind>, mixed: bool, out: &mut String) {
    match (value, kind) {
        (ValueRef::Null, _) => out.push_str("null"),
        (ValueRef::Integer(0), Some(Kind::Boolean)) => out.push_str("false"),
        (ValueRef::Integer(1), Some(Kind::Boolean)) => out.push_str("true"),
        (ValueRef::Integer(number), _) => out.push_str(&number.to_string()),
        (ValueRef::Real(number), _) if number.is_finite() => {
            out.push_str(&json_text::float_text(number))
        }
        (ValueRef::Real(_), _) => out.push_str("null"),
        (ValueRef::Text(bytes), kind) => {
            let text = String::from_utf8_lossy(bytes);
            let json = kind == Some(Kind::Json) && (!mixed || may_be_json(&text));
            if json { out.push_str(&text) } else { json_text::quote(&text, out) }
        }
        (ValueRef::Blob(bytes), _) => json_text::quote(&blob_text(bytes), out),
    }
}

/// Whether a text may be a cell of a JSON column: those have no blanks.
fn may_be_json(text: &str) -> bool {
    json_text::check(text, Specials::Accept).is_ok() && compact(text) == text
}

/// A blob as text: what is no printable ASCII as `\xAB`.
fn blob_text(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'\\' | 0..=0x1F | 0x7F.. => out.push_str(&format!("\\x{byte:02X}")),
            _ => out.push(char::from(*byte)),
        }
    }
    out
}

fn fault(error: &Error, query: &Query<'_>) -> Fault {
    let message = match error {
        Error::MultipleStatement => "only one statement can be run".to_owned(),
        Error::Empty => "there is no statement".to_owned(),
        Error::SqlInputError { msg, .. } => msg.clone(),
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::OutOfMemory) => Fault::Memory,
        Some(ErrorCode::OperationInterrupted) => Fault::Sql(SqlError::Timeout(query.limits.time)),
        Some(ErrorCode::TooBig) => Fault::Sql(SqlError::refused(format!(
            "a value takes more than {} MiB",
            query.limits.memory >> 20
        ))),
        _ if message.starts_with("no such function") => Fault::Sql(SqlError::refused(format!(
            "{message}; functions: {}",
            names(functions::known())
        ))),
        _ => Fault::Sql(SqlError::refused(explain(&message, query))),
    }
}
