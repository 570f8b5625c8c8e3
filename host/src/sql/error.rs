//! [`SqlError`]: why a statement has no answer, and what the caller is told.

use std::fmt;
use std::time::Duration;

use super::places::Overloaded;

/// Why a statement has no answer (the SQL contract §7). The message is for the user: no path of the
/// host's own code, no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// Body, grammar, parameters, SQL of any kind, references to writing operations, size limits (400).
    #[error("{0}")]
    Refused(String),
    /// A referenced or addressed name does not exist (404).
    #[error("{0}")]
    Unknown(String),
    /// The statement ran longer than it may (504).
    #[error(
        "the statement did not finish within {}; narrow it, or start the host with a longer `--sql-timeout`",
        seconds(*.0)
    )]
    Timeout(Duration),
    /// A referenced operation failed; its own status and words.
    #[error("`{name}` failed: {failure}")]
    Operation {
        /// The operation as `project.op`.
        name: String,
        /// What it said.
        failure: OperationFailure,
    },
    /// As many statements as may run were running, for longer than a call may take (503).
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The engine itself cannot be used (500).
    #[error("{0}")]
    Engine(String),
}

/// How a referenced operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OperationFailure {
    /// The HTTP status that a direct call would have had: 400, 422, 500, 503 or 504.
    pub status: u16,
    /// The operation's words.
    pub message: String,
}

impl SqlError {
    /// The HTTP status (the SQL contract §7).
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused(_) => 400,
            Self::Unknown(_) => 404,
            Self::Timeout(_) => 504,
            Self::Operation { failure, .. } => failure.status,
            Self::Overloaded(_) => 503,
            Self::Engine(_) => 500,
        }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Where in a text something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    line: usize,
    column: usize,
}

impl Place {
    /// The place of the byte `at`.
    pub fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}

/// A text that does not follow the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Malformed {
    /// Where it goes wrong.
    pub place: Place,
    /// What is wrong and what was expected.
    pub what: String,
}

impl From<Malformed> for SqlError {
    fn from(fault: Malformed) -> Self {
        Self::Refused(fault.to_string())
    }
}

/// The names there are, for a message about one that is not among them.
pub(crate) fn names<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> String {
    let list = known.into_iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>();
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
