//! The duckdb engine: one database in memory per process, locked down when it is opened; a connection and
//! temporary tables per statement.
//!
//! libduckdb is opened on the first statement, from `DUCKDB_LIB_DIR` or from where [`install`] puts it.
//! A result is read through a statement around the user's, which turns every column into text by its
//! type, so that numbers stay exact and JSON stays JSON.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use json_text::Specials;

use super::{Engine, Outcome, Query, explain};
use crate::sql::answer::{Answer, Rows};
use crate::sql::error::SqlError;
use crate::sql::feed::Feed;
use crate::sql::lexer::{Dialect, Piece, split};
use crate::sql::limits::Limits;
use crate::sql::table::{Kind, Table, Value, compact};

mod denied;
mod ffi;
pub mod install;
mod syntax;

use denied::Denied;
use ffi::{Connection, Database, Prepared, ReadType, WrittenType};
use syntax::Syntax;

/// Bytes of stack for a statement.
const STACK: usize = 32 << 20;

/// How long after its time a statement may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// DuckDB, opened at run time.
pub struct DuckDb {
    library: PathBuf,
    limits: Limits,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// The database, and what cannot be called in it.
struct Opened {
    database: Arc<Database>,
    denied: Denied,
    /// The text that was looked at last. A statement that wants rows comes back with them.
    last: Mutex<Option<(String, Arc<Looked>)>>,
}

/// What a text says that may be run.
struct Looked {
    /// Whether it is a PIVOT, which is two statements to DuckDB.
    pivot: bool,
    syntax: Syntax,
}

impl Opened {
    fn look(&self, connection: &Connection, sql: &str) -> Result<Arc<Looked>, Stop> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, looked)) = last().as_ref().filter(|(text, _)| text == sql) {
            return Ok(Arc::clone(looked));
        }
        let statements = connection.statements(sql)?.count();
        let pivot = statements == 2 && !has_semicolon(sql);
        if statements > 1 && !pivot {
            return Err(SqlError::refused("only one statement can be run").into());
        }
        let syntax = Syntax::of(connection, sql);
        self.denied.check(&syntax, sql)?;
        let looked = Arc::new(Looked { pivot, syntax });
        *last() = Some((sql.to_owned(), Arc::clone(&looked)));
        Ok(looked)
    }
}

impl DuckDb {
    /// With the library at this place; nothing is opened before the first statement.
    #[must_use]
    pub fn new(library: PathBuf, limits: Limits) -> Self {
        Self { library, limits, opened: Mutex::default() }
    }

    /// The database, opened if it is not yet.
    fn opened(&self) -> Result<Arc<Opened>, SqlError> {
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*slot {
            return Ok(Arc::clone(opened));
        }
        if !self.library.is_file() {
            return Err(SqlError::Engine(
                "the duckdb engine was chosen but libduckdb is not there; run `udf-host sql install-duckdb`, \
                 or name its folder in DUCKDB_LIB_DIR"
                    .to_owned(),
            ));
        }
        let settings = [
            ("memory_limit", format!("{}B", self.limits.memory)),
            // Nothing is written to disk, ours or the user's.
            ("temp_directory", String::new()),
            ("enable_external_access", "false".to_owned()),
            ("autoinstall_known_extensions", "false".to_owned()),
            ("autoload_known_extensions", "false".to_owned()),
            ("allow_community_extensions", "false".to_owned()),
            ("lock_configuration", "true".to_owned()),
        ];
        let open = || -> Result<Opened, String> {
            let database = Arc::new(Database::open(&self.library, &settings)?);
            let connection = database.connect()?;
            for guard in denied::GUARDS {
                connection.execute(guard)?;
            }
            let denied = Denied::of(&connection)?;
            Ok(Opened { database, denied, last: Mutex::default() })
        };
        let opened = open().map_err(|error| {
            SqlError::Engine(format!("libduckdb cannot be used: {}", first_line(&error)))
        })?;
        Ok(Arc::clone(slot.insert(Arc::new(opened))))
    }
}

impl Engine for DuckDb {
    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn run(&self, query: &Query<'_>) -> Result<Outcome, SqlError> {
        let opened = self.opened()?;
        let connection = Arc::new(opened.database.connect().map_err(SqlError::Engine)?);
        let (sql, tables) = (query.sql.to_owned(), query.tables.to_vec());
        let looked = within(query, &connection, move |connection| {
            let looked = opened.look(connection, &sql)?;
            Ok((looked.pivot, looked.syntax.wants(&tables)))
        });
        let (pivot, wants) = looked?;
        if let Some(wants) = wants {
            return Ok(Outcome::Wants(wants));
        }
        for (name, feed) in query.tables {
            let table = match feed {
                Feed::Whole(table) => table,
                // One part is all that is read of it, if any.
                Feed::Parts(parts) => match &parts.known[..] {
                    [(_, table)] => table,
                    _ => return Err(SqlError::Engine("a table was read by halves".to_owned())),
                },
            };
            load(&connection, name, table)
                .map_err(|message| Stop::Engine(message).explain(query, None))?;
        }
        let (sql, limits, keep) = (query.sql.to_owned(), query.limits.clone(), query.keep);
        // What the rows take to get there is not the statement's time.
        let answer = within(query, &connection, move |connection| {
            answer(connection, &sql, pivot, (&limits, keep))
        });
        answer.map(Outcome::Answer)
    }
}

/// Does a part of a statement's work on a thread of its own, for as long as a statement may take: DuckDB parses and
/// plans by recursion, deeper than the stack of a thread of the runtime.
fn within<T: Send + 'static>(
    query: &Query<'_>,
    connection: &Arc<Connection>,
    work: impl FnOnce(&Connection) -> Result<T, Stop> + Send + 'static,
) -> Result<T, SqlError> {
    let deadline = Instant::now() + query.limits.time;
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
    let mut wait = query.limits.time;
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
enum Stop {
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
    pivot: bool,
    (limits, keep): (&Limits, Option<usize>),
) -> Result<Answer, Stop> {
    // The text as it is, so that nothing in it can end the statement around it.
    let statements = connection.statements(sql)?;
    if pivot {
        prelude(&statements.prepare(0)?)?;
    }
    let columns = {
        let prepared = statements.prepare(statements.count() - 1)?;
        check(&prepared)?;
        prepared.columns()
    };
    let around = around(sql, &columns);
    let statements = connection.statements(&around)?;
    if statements.count() == 2 && pivot {
        prelude(&statements.prepare(0)?)?;
    } else if statements.count() != 1 {
        return Err(SqlError::refused("only one statement can be run").into());
    }
    let prepared = statements.prepare(statements.count() - 1)?;
    check(&prepared)?;
    let names = columns.iter().map(|(name, _)| name).collect::<Vec<_>>();
    let mut out = Rows::new(&names, limits, keep);
    let mut rows = prepared.stream()?;
    while let Some(chunk) = rows.chunk()? {
        let texts = (0..columns.len()).map(|at| chunk.column(at)).collect::<Vec<_>>();
        for row in 0..chunk.size {
            if !out.begin()? {
                return Ok(out.finish());
            }
            for (texts, (_, read)) in texts.iter().zip(&columns) {
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

/// A temporary table with the rows of an operation.
fn load(connection: &Connection, name: &str, table: &Table) -> Result<(), String> {
    let mut create = format!("CREATE TEMP TABLE \"{name}\"(");
    let mut types = Vec::with_capacity(table.columns().len());
    for (at, column) in table.columns().iter().enumerate() {
        let (sql, written) = match column.kind {
            Kind::Text => ("VARCHAR", WrittenType::Varchar),
            Kind::Integer => ("BIGINT", WrittenType::Bigint),
            Kind::Double => ("DOUBLE", WrittenType::Double),
            Kind::Boolean => ("BOOLEAN", WrittenType::Boolean),
            Kind::Json => ("JSON", WrittenType::Json),
        };
        types.push(written);
        let comma = if at > 0 { "," } else { "" };
        create.push_str(&format!("{comma}\"{}\" {sql}", column.name.replace('"', "\"\"")));
    }
    create.push(')');
    connection.execute(&create)?;
    connection.append(name, &types, table.len(), |writer, row, column| {
        match table.value(row, column) {
            Value::Null => writer.null(),
            Value::Text(text) | Value::Json(text) => writer.text(&text),
            Value::Integer(number) => writer.integer(number),
            Value::Double(number) => writer.double(number),
            Value::Boolean(truth) => writer.boolean(truth),
        }
    })
}

/// The statement around the user's: every column as text, by its type and its place.
fn around(sql: &str, columns: &[(String, ReadType)]) -> String {
    let mut out = "SELECT ".to_owned();
    let mut names = String::new();
    for (at, (_, read)) in columns.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        match read {
            ReadType::Nested => out.push_str(&format!("{comma}CAST(to_json(c{at}) AS VARCHAR)")),
            _ => out.push_str(&format!("{comma}CAST(c{at} AS VARCHAR)")),
        }
        names.push_str(&format!("{comma}c{at}"));
    }
    // The line break ends a comment that the statement may end with.
    out.push_str(&format!(" FROM (\n{}\n) AS rows_of_statement({names})", without_end(sql)));
    out
}

/// The statement without the semicolons at its end; what follows them is blanks and comments.
fn without_end(sql: &str) -> String {
    let pieces = split(sql, Dialect::DuckDb).0;
    let text = |piece: &Piece<'_>| match piece {
        Piece::Code(text) | Piece::Quoted(text) | Piece::Comment(text) => (*text).to_owned(),
        Piece::Blank => " ".to_owned(),
        // There are none in a statement that is run.
        Piece::Param(name, _) => format!("${name}"),
        Piece::Ref(_) => String::new(),
    };
    let mut kept = pieces.iter().map(text).collect::<Vec<_>>();
    for (piece, text) in pieces.iter().zip(&mut kept).rev() {
        match piece {
            Piece::Code(code) => {
                let end = code.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace());
                *text = end.to_owned();
                if !end.is_empty() {
                    break;
                }
            }
            Piece::Comment(_) | Piece::Blank => text.push('\n'),
            Piece::Quoted(_) | Piece::Param(..) | Piece::Ref(_) => break,
        }
    }
    kept.concat()
}

fn has_semicolon(sql: &str) -> bool {
    split(sql, Dialect::DuckDb)
        .0
        .iter()
        .any(|piece| matches!(piece, Piece::Code(text) if text.contains(';')))
}

fn write(text: Option<&str>, read: ReadType, out: &mut String) {
    let Some(text) = text else { return out.push_str("null") };
    match read {
        ReadType::Boolean => out.push_str(text),
        // DuckDB writes `nan` and `inf` where JSON has no number.
        ReadType::Number
            if text
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')) =>
        {
            out.push_str(text);
        }
        ReadType::Number => out.push_str("null"),
        ReadType::Json | ReadType::Nested => match json(text) {
            Some(json) => out.push_str(&json),
            None => json_text::quote(text, out),
        },
        ReadType::Text => json_text::quote(text, out),
    }
}

/// A JSON text as it can be sent; `None` if it is none.
fn json(text: &str) -> Option<String> {
    if json_text::check(text, Specials::Refuse).is_ok() {
        return Some(compact(text).into_owned());
    }
    let standard = with_nulls(text);
    json_text::check(&standard, Specials::Refuse).is_ok().then(|| compact(&standard).into_owned())
}

/// The text with the numbers that DuckDB's JSON writes and JSON lacks (`nan`, `inf`, `-inf`) as null.
fn with_nulls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_alphabetic()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = if rest.starts_with('"') {
            let mut escaped = false;
            let end = rest.bytes().skip(1).position(|b| {
                let ends = b == b'"' && !escaped;
                escaped = b == b'\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |n| n + 2)
        } else {
            rest.bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'+'))
                .count()
        };
        let token = &rest[..len];
        let special = ["nan", "inf", "-inf", "infinity", "-infinity", "-nan"];
        out.push_str(if special.iter().any(|s| token.eq_ignore_ascii_case(s)) {
            "null"
        } else {
            token
        });
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
