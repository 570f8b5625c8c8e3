//! What the operations of `run-management` share. Behaviour: the app-store contract §7 (records), §8.4 (operations),
//! §10 (transcripts).
//!
//! - [`run`] is the run: its columns, the change of one, the sweep of many.
//! - [`params`] reads what arrives as JSON inside a text.

pub mod params;
pub mod run;

pub use run::COLUMNS as RUN_COLUMNS;

/// Where the transcripts of runs lie, below the app directory.
pub const TRANSCRIPTS: &str = "runs";

/// The id under which a seeded transcript is written. The empty one names no log to readers, yet seeding
/// takes it like any other, as `.ndjson` (the app-store contract §8.4).
pub fn transcript_id(id: &str) -> &str {
    if id.is_empty() { "./" } else { id }
}
