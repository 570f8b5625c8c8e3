//! `udf-host run-feedback OP --flag value…`: the operations of the project `run-feedback` with flags, output and exit
//! status of the scripts they stand in for, so that a workflow's shell steps can be pointed here unchanged.
//!
//! Standard output holds the reply alone. Refusals, banners and questions go to standard error.

mod answer;
mod banner;
mod dialogue;
mod flags;
mod poll;
mod project;
mod question;
mod stand_in;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use clap::{Args, Subcommand};
use json_text::{Layout, Specials};
use serde_json::{Value, json};

use self::project::{Project, Said};
use super::{Exit, output};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

const HELP: &str = "\
Operations: request-feedback, process-response, generate-request-id, format-feedback-comment,
update-feedback-state, get-user-identity, emit-event, generate-run-id, init-run, get-run,
list-runs, list-pending, resume-run, parse-issue-reply. Their flags are their parameters:
`--run-id X` is `run_id`; `OP --help` lists them. `poll` brings in what people answered on
issues, `answer` takes a line for each of many runs.

Exit codes: 0 done, otherwise the number in the refusal on standard error:
  1  cannot proceed: something is missing or malformed
  2  unknown feedback type; of the low-level operations: state not written, or the host failed
  3  nothing is waiting for an answer
  4  another request is open
  5  not an offered option
  7  state not written, run closed, a request already open, or the host failed";

/// Call an operation of `run-feedback` as the script it stands in for.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct RunFeedback {
    #[command(subcommand)]
    words: Words,
}

#[derive(Debug, Subcommand)]
enum Words {
    Poll(poll::Poll),
    Answer(answer::Answers),
    StandInTracker(stand_in::StandIn),
    /// The operation, `emit-event` or `emit_event`, then its flags.
    #[command(external_subcommand)]
    Of(Vec<OsString>),
}

impl RunFeedback {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        match self.words {
            Words::Of(words) => {
                let (name, arguments) = words
                    .split_first()
                    .map_or((OsStr::new(""), &[][..]), |(op, rest)| (op.as_os_str(), rest));
                let name = name.to_string_lossy();
                stand_in_for(config, &name, arguments).or_else(|error| fault(&name, &error))
            }
            Words::Poll(poll) => poll.run(&Project { host: Host::start(config)? }),
            Words::Answer(answers) => Host::start(config)
                .and_then(|host| answers.run(&Project { host }))
                .or_else(|error| fault("answer", &error)),
            Words::StandInTracker(tracker) => tracker.run(),
        }
    }
}

/// Does what the script of this name does.
fn stand_in_for(config: Config, name: &str, arguments: &[OsString]) -> Result<Exit, HostError> {
    let project = Project { host: Host::start(config)? };
    let op = name.replace('-', "_");
    let declared = project.flags(&op)?;
    let params = match flags::parse(&declared, arguments) {
        Ok(flags::Asked::Call(params)) => params,
        Ok(flags::Asked::Help) => {
            return output::line(&flags::usage(name, &declared)).map(|()| Exit::Done);
        }
        Err(message) => return refused(&refusal(name, "INVALID_ARGUMENT", 1, &message)),
    };
    match op.as_str() {
        "request_feedback" => project.request(params),
        "process_response" => project.respond(&params),
        _ => match project.call(&op, &params)? {
            Said::Text(text) => print(&text),
            Said::Json(reply) if is_refusal(&reply) => refused(&reply),
            Said::Json(reply) => print(&pretty(&reply)?),
        },
    }
}

/// What is wrong with the host itself. Its own exit codes mean something else to a script: 3 would be that nothing waits.
fn fault(name: &str, error: &HostError) -> Result<Exit, HostError> {
    let op = name.replace('-', "_");
    let whole = matches!(op.as_str(), "request_feedback" | "process_response" | "answer");
    let (code, number) = match Exit::of(error) {
        Exit::Unknown => ("UNKNOWN_OPERATION", 1),
        Exit::Usage => ("INVALID_ARGUMENT", 1),
        _ if whole => ("HOST_FAILED", 7),
        _ => ("HOST_FAILED", 2),
    };
    let report = Exit::report(error);
    let message = report.strip_prefix("udf-host: ").unwrap_or(&report);
    refused(&refusal(name, code, number, message))
}

fn is_refusal(reply: &Value) -> bool {
    reply["status"] == "error"
}

fn refusal(op: &str, code: &str, number: u8, message: &str) -> Value {
    let operation = match op.replace('_', "-") {
        // The script is called after what it makes, and so is the operation in its own replies.
        name if name == "init-run" => "init-run-directory".to_owned(),
        name => name,
    };
    json!({"status": "error", "operation": operation, "error": {"code": code, "number": number, "message": message}})
}

/// Says no as the scripts do: the JSON on standard error, its number as the exit status.
fn refused(reply: &Value) -> Result<Exit, HostError> {
    say(&format!("{}\n", pretty(reply)?));
    let number = reply["error"]["number"].as_u64().and_then(|number| u8::try_from(number).ok());
    Ok(Exit::Operation(number.filter(|number| *number > 0).unwrap_or(1)))
}

fn pretty(reply: &Value) -> Result<String, HostError> {
    let mut text = String::new();
    json_text::render(&reply.to_string(), Layout::Pretty { level: 0 }, Specials::Accept, &mut text)
        .map_err(|error| HostError::Internal {
            message: "the reply is not JSON".to_owned(),
            detail: error.to_string(),
        })?;
    Ok(text)
}

/// Prints the reply, with exactly the line end it has or one more.
fn print(text: &str) -> Result<Exit, HostError> {
    output::line(text.strip_suffix('\n').unwrap_or(text)).map(|()| Exit::Done)
}

/// Tells people; false if nobody listens on standard error any more.
fn say(text: &str) -> bool {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_ok()
}
