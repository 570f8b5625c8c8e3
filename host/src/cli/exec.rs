//! `udf-host exec OP k=v…`: one call, without a running host.

use std::io::{self, IsTerminal, Read};

use clap::Args;
use json_text::{Json, Layout, Specials};

use super::{Exit, exit, operation, output, progress};
use crate::Host;
use crate::config::Config;
use crate::dispatch::Call;
use crate::envelope::{self, Body, REPLY_LIMIT};
use crate::error::HostError;
use crate::plugins::Address;

/// Call one operation and print what it answers.
///
/// No running host is needed; one that runs on the same files does not mind. A reply that says `"status": "error"` with a
/// number under `error` is printed like any other, and its number is the exit code.
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
            Ok(envelope) => {
                let data;
                let text = if whole {
                    &envelope
                } else {
                    data = shown(&envelope)?;
                    &data
                };
                // A program gets the bytes that the operation answered.
                match io::stdout().is_terminal() {
                    true => output::json_text(text)?,
                    false => output::line(text)?,
                }
                Ok(refused(&envelope).map_or(Exit::Done, Exit::Operation))
            }
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
            host.catalog.entry(&address).is_some_and(|entry| entry.is_decided())
        });
        let (params, app_dir) = envelope::split_app_dir(overrides);
        let call = Call { params, app_dir, ..Call::new(address.clone()) };
        let reply =
            host.dispatcher.call(call).inspect_err(|error| explain(&host, &address, error))?;
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
            Some(text) if text.trim_start().starts_with('{') => text.to_owned(),
            Some(text) => {
                return Err(HostError::BadRequest {
                    message: format!(
                        "behind `--json` stands an object of parameters or `-`, not `{text}`; for the whole envelope put \
                         `--json` last"
                    ),
                });
            }
        };
        Ok(Body::parse_named(text.as_bytes(), "`--json`")?.all_texts())
    }
}

/// The whole story behind an operation that cannot run, for example the compiler's message.
fn explain(host: &Host, address: &Address, error: &HostError) {
    if matches!(error, HostError::Refused { .. })
        && let Some(detail) = host.catalog.entry(address).and_then(|entry| entry.view().detail)
    {
        output::aside(&detail);
    }
}

/// What stands under `data`.
fn data(envelope: &str) -> Option<Json<'_>> {
    Json::trusted(envelope).get("data")
}

/// The number of a refusal, which is data like any other answer: `{"status": "error", "error": {"number": 3}}`.
fn refused(envelope: &str) -> Option<u8> {
    let data = data(envelope)?;
    let is_error = data.get("status").is_some_and(|status| status.eq_str("error"));
    let number = data.get("error").filter(|_| is_error)?.get("number")?.as_i64()?;
    u8::try_from(number).ok().filter(|number| *number > 0)
}

/// What stands under `data`, indented for a person.
fn shown(envelope: &str) -> Result<String, HostError> {
    let data = data(envelope).map(Json::text).unwrap_or_default();
    if !io::stdout().is_terminal() {
        return Ok(data.to_owned());
    }
    let mut text = String::new();
    match json_text::render(data, Layout::Pretty { level: 0 }, Specials::Accept, &mut text) {
        Ok(()) => Ok(text),
        // Nothing that a person would read indented: shown as it stands.
        Err(_) => Ok(data.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_with_a_number_is_one() {
        for (data, want) in [
            (r#"{"status":"error","error":{"code":"X","number":3}}"#, Some(3)),
            (r#"{"status":"error","error":{"code":"X"}}"#, None),
            (r#"{"status":"error","error":"X"}"#, None),
            (r#"{"status":"error","error":{"number":0}}"#, None),
            (r#"{"status":"error","error":{"number":256}}"#, None),
            (r#"{"status":"error","error":{"number":-1}}"#, None),
            (r#"{"status":"error","error":{"number":"3"}}"#, None),
            (r#"{"status":"success","error":{"number":3}}"#, None),
            (r#"{"error":{"number":3}}"#, None),
            (r#"[{"status":"error","error":{"number":3}}]"#, None),
            (r#""error""#, None),
            ("null", None),
        ] {
            assert_eq!(refused(&format!(r#"{{"data":{data},"error":null}}"#)), want, "{data}");
        }
    }
}
