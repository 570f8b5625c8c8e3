//! The project `run-feedback` on a host of this process: its flags, its calls, its parameters.

use serde_json::Value;

use super::{flags, refusal};
use crate::Host;
use crate::cli::progress;
use crate::dispatch::Call;
use crate::error::HostError;
use crate::plugins::Address;
use crate::reply::Reply;

const WORKSPACE: &str = "_core";
const PROJECT: &str = "run-feedback";

/// What an operation answers.
pub(super) enum Said {
    Text(String),
    Json(Value),
}

/// The project on a host.
pub(super) struct Project {
    pub(super) host: Host,
}

pub(super) type Params = Vec<(String, String)>;

impl Project {
    /// The flags of an operation, once it is built.
    pub(super) fn flags(&self, op: &str) -> Result<Vec<flags::Flag>, HostError> {
        let address = Address::new(WORKSPACE, PROJECT, op);
        let catalog = &self.host.catalog;
        catalog.wait_discovered(std::time::Instant::now() + progress::BUILD_TIME);
        catalog.find(WORKSPACE, PROJECT, op)?;
        // A script's refusals stand on standard error as JSON, with nothing before them.
        progress::until_unsaid(&self.host, |_| {
            catalog.entry(&address).is_some_and(|entry| entry.is_decided())
        });
        let (_, loaded) = catalog.wait_ready(&address, std::time::Instant::now())?;
        Ok(flags::of(&loaded.descriptor))
    }

    pub(super) fn call(&self, op: &str, params: &[(String, String)]) -> Result<Said, HostError> {
        let address = Address::new(WORKSPACE, PROJECT, op);
        let text =
            match self.host.dispatcher.call(Call { params: params.to_vec(), ..Call::new(address) })
            {
                Ok(Reply::Value(text)) => text,
                Ok(Reply::Records(records)) => format!("[{}]", records.join(",")),
                // What the host refuses of a parameter is a refusal of the operation to a script.
                Err(HostError::BadParameter { message }) => {
                    return Ok(Said::Json(refusal(op, "INVALID_ARGUMENT", 1, &message)));
                }
                Err(error) => return Err(error),
            };
        match serde_json::from_str(&text) {
            Ok(Value::String(text)) => Ok(Said::Text(text)),
            Ok(reply) => Ok(Said::Json(reply)),
            Err(error) => Err(HostError::Internal {
                message: format!("`{op}` did not answer JSON"),
                detail: error.to_string(),
            }),
        }
    }

    pub(super) fn call_json(
        &self,
        op: &str,
        params: &[(String, String)],
    ) -> Result<Value, HostError> {
        Ok(match self.call(op, params)? {
            Said::Json(reply) => reply,
            Said::Text(text) => text.into(),
        })
    }
}

/// The parameters that name the run.
pub(super) fn of_run(params: &Params) -> Params {
    params
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "run_id" | "base_path"))
        .cloned()
        .collect()
}

/// The text of a parameter; empty if it is not given.
pub(super) fn value<'a>(params: &'a Params, name: &str) -> &'a str {
    params.iter().find(|(given, _)| given == name).map_or("", |(_, text)| text)
}
