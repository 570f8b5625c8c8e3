//! `udf-host run-feedback OP --flag value…`: the operations of the project `run-feedback` with flags, output and exit
//! status of the scripts they stand in for, so that a workflow's shell steps can be pointed here unchanged.
//!
//! Standard output holds the reply alone. Refusals, banners and questions go to standard error.

mod answer;
mod banner;
mod flags;
mod poll;
mod question;
mod stand_in;

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};

use clap::{Args, Subcommand};
use json_text::{Layout, Specials};
use serde_json::{Value, json};

use self::question::Question;
use super::{Exit, output, progress};
use crate::Host;
use crate::config::Config;
use crate::dispatch::Call;
use crate::error::HostError;
use crate::plugins::Address;
use crate::reply::Reply;

const WORKSPACE: &str = "_core";
const PROJECT: &str = "run-feedback";

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

/// What an operation answers.
enum Said {
    Text(String),
    Json(Value),
}

/// The project on a host.
struct Project {
    host: Host,
}

type Params = Vec<(String, String)>;

impl Project {
    /// The flags of an operation, once it is built.
    fn flags(&self, op: &str) -> Result<Vec<flags::Flag>, HostError> {
        let address = Address::new(WORKSPACE, PROJECT, op);
        let catalog = &self.host.catalog;
        catalog.wait_discovered(std::time::Instant::now() + progress::BUILD_TIME);
        catalog.find(WORKSPACE, PROJECT, op)?;
        progress::until(&self.host, |_| {
            catalog.entry(&address).is_some_and(|entry| entry.view().state != "building")
        });
        let (_, loaded) = catalog.wait_ready(&address, std::time::Instant::now())?;
        Ok(flags::of(&loaded.descriptor))
    }

    fn call(&self, op: &str, params: &[(String, String)]) -> Result<Said, HostError> {
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

    fn call_json(&self, op: &str, params: &[(String, String)]) -> Result<Value, HostError> {
        Ok(match self.call(op, params)? {
            Said::Json(reply) => reply,
            Said::Text(text) => text.into(),
        })
    }

    /// Asks. The question is shown before its flag is raised, so that the flag tells the truth.
    fn request(&self, mut params: Params) -> Result<Exit, HostError> {
        say(&banner::request_start(&params));
        let shown = value(&params, "cli_prompt") != "false";
        params.retain(|(name, _)| name != "cli_prompt");
        params.push(("cli_prompt".to_owned(), "false".to_owned()));
        let mut reply = self.call_json("request_feedback", &params)?;
        if is_refusal(&reply) {
            return refused(&reply);
        }
        let question = if shown { self.question(&params, &reply)? } else { None };
        if let Some(question) = &question
            && say(&question.text())
        {
            self.mark_shown(&params, &mut reply)?;
        }
        print(&pretty(&reply)?)?;
        say(&banner::request_end(&reply));
        match question {
            Some(question) if is_answered_here() => self.ask(&params, &reply, &question),
            _ => Ok(Exit::Done),
        }
    }

    /// The question as it is stored; none if it has been answered meanwhile.
    fn question(&self, params: &Params, reply: &Value) -> Result<Option<Question>, HostError> {
        let run = self.call_json("get_run", &of_run(params))?;
        let request = &run["state"]["feedback_request"];
        if request["request_id"] != reply["result"]["request_id"] {
            return Ok(None);
        }
        let comment = question::comment_params(&run, &reply["details"]);
        Ok(match self.call("format_feedback_comment", &comment)? {
            Said::Text(comment) => Some(Question::new(request, &reply["details"], &comment)),
            Said::Json(_) => None,
        })
    }

    fn mark_shown(&self, params: &Params, reply: &mut Value) -> Result<(), HostError> {
        let mut mark = of_run(params);
        let id = reply["result"]["request_id"].as_str().unwrap_or_default();
        for (name, text) in [("operation", "mark-notified"), ("request_id", id), ("cli", "true")] {
            mark.push((name.to_owned(), text.to_owned()));
        }
        let marked = self.call_json("update_feedback_state", &mark)?;
        // Answered or replaced meanwhile: shown it was all the same.
        if is_refusal(&marked) && marked["error"]["code"] != "REQUEST_ID_MISMATCH" {
            let warning = json!({"code": "STATE_UPDATE_FAILED", "number": 7, "message": marked["error"]["message"]});
            match reply.get_mut("warnings").and_then(Value::as_array_mut) {
                Some(warnings) => warnings.push(warning),
                None => reply["warnings"] = json!([warning]),
            }
        }
        reply["notifications"]["cli"] = true.into();
        reply["result"]["notifications"]["cli"] = true.into();
        Ok(())
    }

    /// Takes the answer of the person at this terminal; an empty line leaves the request open.
    fn ask(&self, params: &Params, reply: &Value, question: &Question) -> Result<Exit, HostError> {
        while let Some(line) = read(question.prompt()).filter(|line| !line.is_empty()) {
            let response = match question.understood(&line) {
                Ok(response) => response,
                Err(offered) => {
                    say(&format!("{offered}\n"));
                    continue;
                }
            };
            let comment = read("Comment (empty for none): ").unwrap_or_default();
            let mut answer = of_run(params);
            let id = reply["result"]["request_id"].as_str().unwrap_or_default();
            for (name, text) in [("request_id", id), ("response", &response), ("comment", &comment)]
            {
                answer.push((name.to_owned(), text.to_owned()));
            }
            say(&banner::response_start(&answer));
            let answered = self.call_json("process_response", &answer)?;
            if answered["error"]["code"] == "INVALID_RESPONSE" {
                say(&format!("{}\n", banner::one_line(&answered["error"]["message"])));
                continue;
            }
            return responded(&answered);
        }
        Ok(Exit::Done)
    }

    fn respond(&self, params: &Params) -> Result<Exit, HostError> {
        say(&banner::response_start(params));
        responded(&self.call_json("process_response", params)?)
    }
}

fn responded(reply: &Value) -> Result<Exit, HostError> {
    if is_refusal(reply) {
        return refused(reply);
    }
    print(&pretty(reply)?)?;
    say(&banner::response_end(reply));
    Ok(Exit::Done)
}

/// The parameters that name the run.
fn of_run(params: &Params) -> Params {
    params
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "run_id" | "base_path"))
        .cloned()
        .collect()
}

/// The text of a parameter; empty if it is not given.
fn value<'a>(params: &'a Params, name: &str) -> &'a str {
    params.iter().find(|(given, _)| given == name).map_or("", |(_, text)| text)
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

/// Whether a person sits at all three ends. A step of a script must neither wait for one nor find two replies in its output.
fn is_answered_here() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// A line from the terminal without blanks around it; none at its end.
fn read(prompt: &str) -> Option<String> {
    say(prompt);
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}
