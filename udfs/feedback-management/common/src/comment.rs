//! Comments that are messages to the human.

use sdk::prelude::*;

/// Columns a comment has in SQL (the sql contract §5).
pub const COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("taskId"),
    Column::text("author"),
    Column::text("body"),
    Column::text("createdAt"),
    Column::text("kind"),
    Column::json("widget"),
];

/// The kind of a comment that is a message to the human.
pub const NOTIFY: &str = "notify";

/// Whether the comment asks for the human's attention; any other kind is talk between agents.
pub fn is_notify(comment: &Record) -> bool {
    comment.is("kind", NOTIFY)
}
