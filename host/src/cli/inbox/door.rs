//! [`Door`]: the way to the operations, through a host in this process or one that runs.

mod inside;
mod outside;

use core_store::{AppStore, State};

pub(super) use self::inside::Inside;
pub(super) use self::outside::Outside;
use crate::error::HostError;

/// What the inbox is made of (the app-store contract §9).
const COLLECTIONS: [&str; 5] = ["tasks", "runs", "cards", "comments", "dismissedFeedbackKeys"];

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

    /// Which of [`COLLECTIONS`] read as empty although their files are not, each as a note for a person. None where
    /// the state folder is only known to the host.
    fn damaged(&self) -> Vec<String>;
}

/// The notes of [`Door::damaged`], of this state folder.
fn damaged(app: &AppStore) -> Vec<String> {
    let note = |name: &&str| {
        let fault = match app.read(name) {
            Ok(snapshot) => match snapshot.state() {
                State::Missing | State::Stored | State::Falsy => return None,
                State::Odd => "holds no list".to_owned(),
                State::Corrupt(reason) => format!("is corrupt ({reason})"),
            },
            Err(error) => format!("cannot be read ({error})"),
        };
        let file = app.dir().join("state").join(format!("{name}.json"));
        Some(format!("{name} cannot be read: {} {fault}; run `udf-host doctor`", file.display()))
    };
    COLLECTIONS.iter().filter_map(note).collect()
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
