//! What one statement may take (the SQL contract §7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one statement may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time in the engine; operations are not counted.
    pub time: Duration,
    /// Rows of the result.
    pub rows: usize,
    /// Bytes of the result as JSON.
    pub bytes: usize,
    /// Bytes that the engine may hold: SQLite over all statements that run at a time, DuckDB for each.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(5), rows: 1_000_000, bytes: 256 << 20, memory: 256 << 20 }
    }
}
