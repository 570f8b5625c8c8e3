//! [`Source`]: where open questions come from, and what can be done about them. All sources look the same to people.

use super::form::Given;
use super::row::Row;
use crate::error::HostError;

/// What a source has open.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) rows: Vec<Row>,
    /// What could not be shown, and why.
    pub(super) notes: Vec<String>,
    /// Whether something could not be read, so that more may wait than is shown.
    pub(super) unread: bool,
}

/// One thing, open or not, with all that belongs to it.
#[derive(Debug)]
pub(super) struct Item {
    /// Short facts, by name.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Longer texts, by name.
    pub(super) texts: Vec<(&'static str, String)>,
    /// How to answer or dismiss it; empty if it is no longer open.
    pub(super) hints: Vec<String>,
    /// What was asked of the same task or run before and after, oldest first.
    pub(super) history: Vec<Past>,
    /// The whole as JSON.
    pub(super) json: String,
}

/// One line of a history.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) id: String,
    pub(super) created_at: String,
    /// How it ended, or that it did not.
    pub(super) outcome: String,
    pub(super) body: String,
}

/// What became of an answer or a dismissal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is stored.
    Done {
        /// One line for a person.
        said: String,
        /// The record as it is now, as JSON.
        json: String,
    },
    /// Somebody else was faster; nothing was stored.
    Faster {
        /// Who, when and with what.
        said: String,
        /// `{"by", "at", "status", "result"}`.
        winner: String,
    },
    /// It does not fit; nothing was stored.
    Misfit(String),
}

/// Where open questions come from.
pub(super) trait Source {
    /// What is open, in any order; of `project`, unless that is empty.
    fn open(&self, project: &str) -> Result<Open, HostError>;

    /// The thing with this id; `None` if the source has none.
    fn item(&self, id: &str) -> Result<Option<Item>, HostError>;

    /// Answers it as `by`; `None` if the source has none.
    fn answer(&self, id: &str, given: &Given<'_>, by: &str) -> Result<Option<Outcome>, HostError>;

    /// Takes it off the list without an answer; `None` if the source has none.
    fn dismiss(&self, id: &str) -> Result<Option<Outcome>, HostError>;
}
