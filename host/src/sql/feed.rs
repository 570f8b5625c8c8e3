//! [`Feed`]: a table as an engine gets it, whole or by parts.
//!
//! A part is the rows whose column has one text, read by the operation's own parameter. An engine that is given
//! [`Parts`] runs until it needs a part that is not there, says so ([`Wants`]), and is run again with it; so nothing is
//! read that the statement does not ask for. SQLite decides what that is as it runs; of DuckDB it is told beforehand, by
//! the tree that its parser makes of the statement.

use std::sync::Arc;

use super::table::{Column, Table};

/// Parts of one table that a statement may ask for; beyond it the whole table is the better way.
pub const MOST_PARTS: usize = 4;

/// A table of a statement.
#[derive(Debug, Clone)]
pub enum Feed {
    /// All rows.
    Whole(Arc<Table>),
    /// The rows by the text in one of some columns.
    Parts(Arc<Parts>),
}

/// A table of which rows are read as they are asked for. Its columns are known without any.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The columns that the whole table has.
    pub columns: Vec<Column>,
    /// Which of them an equality can be read by.
    pub by: Vec<usize>,
    /// What has been read.
    pub known: Vec<(Part, Arc<Table>)>,
    /// What that is of; a part of another moment cannot stand beside it.
    pub moment: Option<String>,
}

/// Which rows: those whose column has this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The column's position.
    pub column: usize,
    /// The text.
    pub text: String,
}

/// What a statement needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    /// The position of the table among the statement's.
    pub table: usize,
    /// The part; without one, all of it.
    pub part: Option<Part>,
}

impl Feed {
    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        match self {
            Self::Whole(table) => table.columns(),
            Self::Parts(parts) => &parts.columns,
        }
    }
}

impl Parts {
    /// The rows of a part and its number, if they have been read.
    #[must_use]
    pub fn get(&self, column: usize, text: &str) -> Option<(usize, &Table)> {
        let is = |part: &Part| part.column == column && part.text == text;
        let at = self.known.iter().position(|(part, _)| is(part))?;
        Some((at, &self.known[at].1))
    }

    /// Whether the rows of this text can be asked for. An empty one means no filter to an operation, and U+FFFD also
    /// stands for what is no text at all. All parts are of one column, so that no row is in two of them.
    #[must_use]
    pub fn can_read(&self, column: usize, text: &str) -> bool {
        self.by.contains(&column)
            && !text.is_empty()
            && !text.contains('\u{fffd}')
            && self.known.len() < MOST_PARTS
            && self.known.iter().all(|(part, _)| part.column == column)
    }
}
