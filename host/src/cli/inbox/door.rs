//! [`Door`]: the way to the operations, through a host in this process or one that runs.

mod inside;
mod outside;

pub(super) use self::inside::Inside;
pub(super) use self::outside::Outside;
use crate::error::HostError;

/// The workspace of the shipped projects.
const WORKSPACE: &str = "_core";

/// Calls operations of the shipped projects.
pub(super) trait Door {
    /// What the operation answers, as JSON text.
    ///
    /// # Errors
    /// Whatever dispatch says, or the host that was asked.
    fn call(&self, project: &str, op: &str, params: &[(&str, &str)]) -> Result<String, HostError>;

    /// Something that changes whenever the state may have, at the cost of a few looks at files; `None` if only a
    /// call can tell.
    fn stamp(&self) -> Option<u64>;
}

/// Whether the error says that there is no such operation here.
pub(super) fn is_absent(error: &HostError) -> bool {
    matches!(
        error,
        HostError::UnknownWorkspace { .. }
            | HostError::UnknownProject { .. }
            | HostError::UnknownOp { .. }
            | HostError::UnknownName { .. }
            | HostError::Remote { status: Some(404), .. }
    )
}

/// The data of an envelope.
fn data(envelope: Vec<u8>) -> Result<String, HostError> {
    let fault = |detail: String| HostError::Internal {
        message: "the reply is not JSON".to_owned(),
        detail,
    };
    let envelope = String::from_utf8(envelope).map_err(|error| fault(error.to_string()))?;
    let data = json_text::Json::trusted(&envelope).get("data").map(json_text::Json::text);
    data.map(str::to_owned).ok_or_else(|| fault("it has no data".to_owned()))
}
