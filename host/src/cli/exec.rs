//! `udf-host exec OP k=v…`: one call, without a running host.

use std::io::{self, IsTerminal, Read};

use clap::Args;
use json_text::{Layout, Specials};

use super::{Exit, exit, operation, output, progress};
use crate::Host;
use crate::config::Config;
use crate::dispatch::Call;
use crate::envelope::{self, Body, REPLY_LIMIT};
use crate::error::HostError;

/// Call one operation and print what it answers.
///
/// No running host is needed; one that runs on the same files does not mind.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Exec {
    /// `op`, `project.op` or `workspace.project.op`.
    op: String,
    /// Parameters as `name=value`; the value is taken as it stands.
    #[arg(value_name = "NAME=VALUE")]
    pub(super) params: Vec<String>,
    /// Parameters as a JSON object, `-` reads it from standard input; without a value: print the whole envelope.
    #[arg(long, value_name = "PARAMS", num_args = 0..=1, default_missing_value = "")]
    pub(super) json: Option<String>,
}

impl Exec {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let whole = self.json.as_deref() == Some("");
        match self.call(config) {
            Ok(envelope) if whole => output::line(&envelope).map(|()| Exit::Done),
            Ok(envelope) => output::line(&data(&envelope)?).map(|()| Exit::Done),
            Err(error) if whole => {
                output::line(&String::from_utf8_lossy(&envelope::render_error(
                    &error.to_string(),
                )))?;
                Ok(Exit::of(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// The reply in its envelope.
    fn call(&self, config: Config) -> Result<String, HostError> {
        let mut overrides = self.json_params()?;
        for param in &self.params {
            let (name, value) = param.split_once('=').ok_or_else(|| HostError::BadRequest {
                message: format!("`{param}` is not `name=value`"),
            })?;
            if overrides.iter().any(|(given, _)| given == name) {
                return Err(HostError::BadRequest { message: format!("`{name}` is given twice") });
            }
            overrides.push((name.to_owned(), value.to_owned()));
        }
        let host = Host::start(config)?;
        let address = operation::find(&host, &self.op)?;
        progress::until(&host, |_| {
            host.catalog.entry(&address).is_some_and(|entry| entry.view().state != "building")
        });
        let (params, app_dir) = envelope::split_app_dir(overrides);
        let reply = host.dispatcher.call(Call { params, app_dir, ..Call::new(address) })?;
        let envelope = envelope::render_reply(&reply, REPLY_LIMIT)?;
        String::from_utf8(envelope).map_err(|error| HostError::Internal {
            message: "the reply is not text".to_owned(),
            detail: error.to_string(),
        })
    }

    fn json_params(&self) -> Result<Vec<(String, String)>, HostError> {
        let text = match self.json.as_deref() {
            None | Some("") => return Ok(Vec::new()),
            Some("-") => {
                let mut text = String::new();
                io::stdin().lock().read_to_string(&mut text).map_err(|error| {
                    HostError::BadRequest {
                        message: format!("cannot read the parameters from standard input: {error}"),
                    }
                })?;
                text
            }
            Some(text) => text.to_owned(),
        };
        Ok(Body::parse_named(text.as_bytes(), "`--json`")?.all_texts())
    }
}

/// What stands under `data`, indented for a person.
fn data(envelope: &str) -> Result<String, HostError> {
    let data = json_text::Json::trusted(envelope)
        .get("data")
        .map(json_text::Json::text)
        .unwrap_or_default();
    if !io::stdout().is_terminal() {
        return Ok(data.to_owned());
    }
    let mut text = String::new();
    json_text::render(data, Layout::Pretty { level: 0 }, Specials::Accept, &mut text).map_err(
        |error| HostError::Internal {
            message: "the reply is not JSON".to_owned(),
            detail: error.to_string(),
        },
    )?;
    Ok(text)
}
