//! [`AgentError`]: why the loop could not serve a task.

use super::operations::CallError;
use super::tasks::TasksError;
use crate::error::HostError;

/// Why the loop could not serve a task. What fails inside a turn is an event of the task instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The durable side refuses.
    #[error(transparent)]
    Tasks(#[from] TasksError),
    /// The event stream could not be written.
    #[error(transparent)]
    Store(#[from] core_store::StoreError),
    /// The request names a workflow that is not there.
    #[error("there is no workflow `{workflow}`; there are {known}")]
    NoWorkflow {
        /// As the request names it.
        workflow: String,
        /// Those that are there.
        known: String,
    },
    /// The workflow that the request names cannot do what it is for.
    #[error("the workflow `{workflow}` cannot be run: {reason}")]
    Unusable {
        /// As the request names it.
        workflow: String,
        /// What it lacks.
        reason: String,
    },
    /// The request names an action that no task can use.
    #[error("a task cannot use the action `{action}`: {reason}")]
    NoAction {
        /// As the request names it.
        action: String,
        /// Why not, and what there is.
        reason: String,
    },
    /// The request is blank.
    #[error("a task needs a request")]
    NoRequest,
    /// The message is blank.
    #[error("a message needs words")]
    NoWords,
    /// Nobody will read the message.
    #[error(
        "task `{0}` came to its end; start another one, with `subject` if it is about the same thing"
    )]
    Ended(String),
    /// An operation that the loop itself needs failed; what was under way is taken up again.
    #[error("{what}: {source}")]
    Call {
        /// What was to be done.
        what: &'static str,
        /// The operation's own failure.
        source: CallError,
    },
    /// The loop was told to stop; the task goes on at the next start, as after a crash.
    #[error("the loop was told to stop")]
    Stopped,
    /// The system has no random bytes.
    #[error("no id could be made: {0}")]
    NoId(String),
}

impl From<AgentError> for HostError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NoWorkflow { .. }
            | AgentError::Unusable { .. }
            | AgentError::NoAction { .. }
            | AgentError::NoRequest
            | AgentError::NoWords
            | AgentError::Ended(_)
            | AgentError::Tasks(
                TasksError::Unknown(_) | TasksError::BadId(_) | TasksError::Busy(_),
            ) => Self::BadRequest { message: error.to_string() },
            AgentError::Tasks(_)
            | AgentError::Store(_)
            | AgentError::Call { .. }
            | AgentError::Stopped
            | AgentError::NoId(_) => {
                Self::Internal { message: error.to_string(), detail: String::new() }
            }
        }
    }
}
