//! How an operation ends: a refusal is a reply, only a fault of the host is an error.

use sdk::{ErrorKind, Reply, UdfError};
use serde_json::Value;

use crate::codes::{Code, Refusal};
use crate::operation::Operation;

/// Why an operation stops before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// It says no, with a code of the contract.
    Refused(Refusal),
    /// The host cannot serve it.
    Failed(UdfError),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl From<UdfError> for Stop {
    fn from(error: UdfError) -> Self {
        Stop::Failed(error)
    }
}

impl Stop {
    /// What the disk refused, as a refusal with `code`; other faults stay what they are.
    pub fn disk(error: UdfError, code: Code) -> Stop {
        match error.kind() {
            ErrorKind::Raised => Refusal::new(code, error.message()).into(),
            _ => error.into(),
        }
    }
}

/// The reply of an operation. `word` stands in a refusal instead of the operation's own.
///
/// # Errors
/// A fault of the host.
pub fn answer(
    operation: Operation,
    word: Option<&str>,
    outcome: Result<Value, Stop>,
) -> Result<Reply, UdfError> {
    let value = match outcome {
        Ok(value) => value,
        Err(Stop::Refused(refusal)) => refusal.reply(operation, word),
        Err(Stop::Failed(error)) => return Err(error),
    };
    Ok(Reply::value(&value))
}
