//! [`Absent`]: stands in for a provider where tasks are only looked at.

use super::{Chat, Provider, ProviderError};

/// Refuses everything: this process looks at tasks and takes messages for them, and runs none.
#[derive(Debug, Clone, Copy)]
pub struct Absent;

impl Provider for Absent {
    fn complete(&self, _: &Chat<'_>) -> Result<String, ProviderError> {
        Err(ProviderError::Refused { message: "no provider is connected here".to_owned() })
    }
}
