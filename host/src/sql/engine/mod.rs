//! [`Engine`]: what runs a statement over tables. Chosen by configuration, never by what is there.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::answer::Answer;
use super::error::SqlError;
use super::feed::{Feed, Wants};
use super::lexer::Dialect;
use super::limits::Limits;

pub mod duckdb;
pub mod sqlite;

/// A statement and its tables, by the names that stand in its text.
pub struct Query<'a> {
    /// One statement, without references and parameters.
    pub sql: &'a str,
    /// The only tables there are.
    pub tables: &'a [(String, Feed)],
    /// What it may take.
    pub limits: &'a Limits,
    /// How many rows are wanted, if not all.
    pub keep: Option<usize>,
    /// How much of its time it has used in attempts before this one.
    pub spent: Duration,
}

/// What became of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// It ended.
    Answer(Answer),
    /// It needs rows of a table that was given by parts.
    Wants(Wants),
    /// It needs the rows of all its tables, and would work too long to be run anew for one part after the other.
    WantsAll,
}

/// Runs statements. Nothing of one is seen by another, and none changes anything.
pub trait Engine: Send + Sync {
    /// Whose rules its texts follow.
    fn dialect(&self) -> Dialect;

    /// Runs one statement that returns rows.
    ///
    /// # Errors
    /// Anything else is refused, by the engine's own parser and settings; so is what takes too much.
    fn run(&self, query: &Query<'_>) -> Result<Outcome, SqlError>;
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// SQLite, part of the binary.
    #[default]
    Sqlite,
    /// DuckDB, opened at run time.
    DuckDb,
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "duckdb" => Ok(Self::DuckDb),
            other => Err(format!("unknown SQL engine `{other}`; there are `sqlite` and `duckdb`")),
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::DuckDb => "duckdb",
        })
    }
}

/// The engine's words, in one line, with the columns there are if it could not find a name.
pub(crate) fn explain(message: &str, query: &Query<'_>) -> String {
    let line = message.lines().next().unwrap_or("the statement failed").trim();
    line.to_owned() + &known_names(line, query)
}

fn known_names(line: &str, query: &Query<'_>) -> String {
    let lower = line.to_ascii_lowercase();
    let mut known = String::new();
    if lower.contains("column") && (lower.contains("no such") || lower.contains("not found")) {
        for (_, table) in query.tables {
            let columns = super::error::names(table.columns().iter().map(|column| &column.name));
            known.push_str(&format!("; columns: {columns}"));
        }
        if query.tables.is_empty() {
            known.push_str("; the statement reads no table");
        }
    } else if lower.contains("table")
        && (lower.contains("no such") || lower.contains("does not exist"))
    {
        known.push_str("; a table is the answer of an operation, written `{{operation}}`");
    }
    known
}
