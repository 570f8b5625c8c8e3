//! [`Provider`]: whoever answers a prompt. Two adapters speak to services, one reads replies from a file.
//!
//! What a service answers to one request is an [`ProviderError::Unavailable`] at worst: the [`Breaker`] in front of
//! it counts those in a row and turns into an error that nobody retries (workflow-engine contract §11).

mod absent;
mod anthropic;
mod breaker;
mod choice;
mod http;
mod metered;
mod openai;
mod scripted;
#[cfg(test)]
pub(super) mod testing;

use serde::{Deserialize, Serialize};

pub use absent::Absent;
pub use anthropic::Anthropic;
pub use breaker::Breaker;
pub use choice::{Choice, Kind, Secret};
pub use http::{HttpClient, Retry};
pub use metered::Metered;
pub use openai::OpenAi;
pub use scripted::Scripted;

/// Who said something in a conversation with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The loop.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation with the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub text: String,
}

impl Message {
    /// What the loop says.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into() }
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into() }
    }
}

/// One request to the model.
#[derive(Debug, Clone, Copy)]
pub struct Chat<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation; the last message is the loop's.
    pub messages: &'a [Message],
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// It could not be reached or was overloaded, also after waiting and asking again.
    #[error("the model provider is unavailable: {message}")]
    Unavailable {
        /// What it said last.
        message: String,
    },
    /// It understood and refuses: a wrong key, an unknown model, a request it does not take. Asking again does not
    /// help.
    #[error("the model provider refuses: {message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// The model answered, and its service says that this is not all, or not what was asked for: a reply cut off at its
    /// length, one that was withheld, a refusal of the model.
    #[error("{reason}")]
    Unusable {
        /// What the service says of it, for the model to read.
        reason: String,
        /// The reply as far as it goes.
        text: String,
    },
    /// It failed several times in a row and is not asked for a while.
    #[error("the model provider failed {failures} times in a row, the last time: {last}")]
    Broken {
        /// How many times.
        failures: u32,
        /// The last failure.
        last: String,
    },
}

impl ProviderError {
    /// Whether no attempt of the same phase can help: the task parks, a sub-agent ends with the outage marker.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Unusable { .. } => false,
            Self::Refused { .. } | Self::Broken { .. } => true,
        }
    }
}

/// Why a reply is not all of one: it reached the limit of its length.
const CUT: &str =
    "it was cut off at the limit of its length: decide less at a time, or say it in fewer words";
/// The service withheld it.
const WITHHELD: &str = "the service withheld it: say it in another way";
/// The model itself refuses.
const DECLINED: &str =
    "the model declined: if it cannot be done, decide that in the form described";

/// Whoever answers a prompt. One request, one reply; sessions are the loop's.
pub trait Provider: Send + Sync {
    /// The reply to the last message.
    ///
    /// # Errors
    /// One of [`ProviderError`].
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError>;

    /// The provider that this one only stands in front of: all but the replies is its affair.
    fn behind(&self) -> Option<&dyn Provider> {
        None
    }

    /// How many replies were taken, for a provider whose replies are numbered: kept with the task, so that a restart
    /// goes on where the task was.
    fn position(&self) -> Option<usize> {
        self.behind().and_then(|provider| provider.position())
    }

    /// Goes on behind the `position`-th reply. Nothing for a provider without numbers.
    fn seek(&self, position: usize) {
        if let Some(provider) = self.behind() {
            provider.seek(position);
        }
    }

    /// Hears that a reply of its own could not be used, and why, as what follows "line 3". A model learns of it from its
    /// next prompt, whoever wrote a script has to be told.
    fn unusable(&self, reply: &str, why: &str) {
        if let Some(provider) = self.behind() {
            provider.unusable(reply, why);
        }
    }

    /// What was wrong with replies, each with its place, as far as it was heard.
    fn faults(&self) -> Vec<String> {
        self.behind().map(|provider| provider.faults()).unwrap_or_default()
    }

    /// Why there is never going to be another reply, for a provider that was asked behind its last one.
    fn ran_out(&self) -> Option<String> {
        self.behind().and_then(|provider| provider.ran_out())
    }
}
