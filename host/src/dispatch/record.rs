//! What is kept of a call that has ended: its operation's counters, and a line of the log.

use std::time::{Duration, Instant};

use super::Call;
use crate::error::HostError;
use crate::plugins::Entry;

/// Counts the call and logs it.
pub(super) fn record<T>(entry: &Entry, call: &Call, began: Instant, result: &Result<T, HostError>) {
    let took = began.elapsed();
    entry.stats.record(took, result.is_err());
    match result {
        Ok(_) => {
            let ms = millis(took);
            tracing::info!(target: "udf_host::call", op = %call.address, ms, outcome = "ok", request = %call.request_id);
        }
        Err(error) => log_failure(call, began, error),
    }
}

/// The line of a call that failed. Whatever the operation said may hold a caller's value, so that only goes to the
/// debug level.
pub(super) fn log_failure(call: &Call, began: Instant, error: &HostError) {
    let ms = millis(began.elapsed());
    let outcome = error.kind();
    match error {
        HostError::Panicked { .. }
        | HostError::Crashed { .. }
        | HostError::Undeclared { .. }
        | HostError::Internal { .. }
        | HostError::Io { .. }
        | HostError::Timeout { .. } => {
            tracing::warn!(target: "udf_host::call", op = %call.address, ms, outcome, request = %call.request_id,
                error = %error, detail = error.detail().unwrap_or_default());
        }
        _ => {
            tracing::info!(target: "udf_host::call", op = %call.address, ms, outcome, request = %call.request_id);
            tracing::debug!(target: "udf_host::call", request = %call.request_id, error = %error);
        }
    }
}

/// Milliseconds with three digits after the point.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
