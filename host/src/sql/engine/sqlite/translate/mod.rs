//! Statements that only DuckDB's language explains, in SQLite's: `x::DATE`, `EXCLUDE`, `QUALIFY`, `PIVOT`, lists …
//!
//! Only a statement that SQLite itself does not understand comes here, so that none changes its meaning, and the few that
//! it would take for something else ([`mistaken`]). What is translated means, all of it, what it means to DuckDB: division
//! is exact, NULLs come last, `LIKE` minds case. The tree ([`tree`], read by [`parser`]) is written down anew by
//! [`lower`], which knows the type of each expression. What cannot be said exactly is [`Untranslated`]; the statement then
//! has SQLite's own error.
//!
//! Dates and time stamps are texts that sort as they should, an interval is a text that is never shown or compared, and
//! lists and structs are JSON.

use super::super::Query;
use crate::sql::table::Kind;

mod lower;
mod mistaken;
mod parser;
mod tokens;
mod tree;
mod types;

/// The statement says something that is not known here, or that SQLite could not do exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Untranslated;

pub(super) use mistaken::mistaken;

type Result<T> = std::result::Result<T, Untranslated>;

/// A statement in SQLite's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Translated {
    /// The statement.
    pub(super) sql: String,
    /// The types of its columns that SQLite has none for, or would not keep.
    pub(super) kinds: Vec<Option<Kind>>,
}

/// Translates a statement over the tables of the query.
pub(super) fn translate(query: &Query<'_>) -> Result<Translated> {
    let tree = parser::parse(query.sql)?;
    lower::statement(&tree, query.tables)
}
