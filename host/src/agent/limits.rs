//! [`Limits`]: what the loop allows itself and its tasks.

use std::time::Duration;

/// What the loop allows itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A task that waits for a person is looked at again after this; the look alone never ends the wait.
    pub long_stop: Duration,
    /// A task whose provider is broken, or that failed, tries again after this.
    pub retry: Duration,
    /// Turns in a row that fail before the task parks (decision O9).
    pub errors: u32,
    /// Turns without a person before one is asked whether to go on.
    pub unattended: u64,
    /// Tokens, estimated, that a task may spend without a person before one is asked.
    pub tokens: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            long_stop: Duration::from_secs(10_800),
            retry: Duration::from_secs(900),
            errors: sdk::workflow::engine::ERRORS_BEFORE_PARKING,
            unattended: 200,
            tokens: 20_000_000,
        }
    }
}
