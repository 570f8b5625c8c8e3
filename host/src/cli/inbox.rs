//! `udf-host inbox`: what waits for a person, and the answers.
//!
//! - `door` calls operations, in this process or over HTTP; everything goes through them, never beside.
//! - `source` is where questions come from: `cards` and `runs`; `desk` puts them together.
//! - `form` says which answers fit; `row`, `age`, `render` how things are shown; `hint` what can be done about them;
//!   `watch` keeps showing.

mod age;
mod cards;
mod desk;
mod door;
mod form;
mod hint;
mod person;
mod render;
mod row;
mod runs;
mod source;
mod watch;

use std::rc::Rc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use json_text::quote;
use serde_json::json;

use self::cards::Cards;
use self::desk::Desk;
use self::door::{Door, Inside, Outside};
use self::form::Given;
use self::hint::Hints;
use self::runs::Runs;
use self::source::{Open, Outcome};
use super::remote::RemoteOptions;
use super::{Exit, given, output, visible};
use crate::config::Config;
use crate::error::HostError;

const HELP: &str = "\
Without --host no running host is needed; one that runs on the same files does not mind.

Exit codes:
  0  done
  1  the operation failed
  2  the command line is wrong, or the answer does not fit the question, which stays open
  3  nothing has this id
  4  the machine said no: a file, a permission, a host that is not there
  5  somebody else was faster; who, when and with what is shown";

/// The exit code of an answer that came too late.
const FASTER: Exit = Exit::Operation(5);

/// Show what waits for you, and answer it.
///
/// Questions of agents, work products to review, messages, outcomes of tasks, and requests of workflow runs. Without a
/// command: `list`. Whatever others wrote is shown with marks in place of control characters.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Inbox {
    #[command(subcommand)]
    command: Option<InboxCommand>,
    #[command(flatten)]
    options: InboxOptions,
}

/// Options of every command of the inbox.
#[derive(Debug, Args)]
struct InboxOptions {
    #[command(flatten)]
    remote: RemoteOptions,
    /// Where workflow runs live [default: .fractary/plugins/faber/runs]
    #[arg(long, global = true, value_name = "DIR")]
    runs: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Only what belongs to this project (`list` and `watch`)
    #[arg(long, global = true, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    /// Questions first; of one kind, what waits longest. With --json: {"items": […], "notes": […]}.
    List,
    /// One thing whole, with what else was asked of its task. With --json: the record and its history.
    Show {
        /// As the list shows it; `RUN:REQUEST` where several runs have such a request.
        id: String,
    },
    Answer(AnswerArguments),
    /// Take a message or an outcome off the list. Questions want an answer.
    Dismiss {
        /// As the list shows it.
        id: String,
    },
    /// The list, drawn again whenever something has changed. Ends on Ctrl-C.
    Watch,
}

/// Answer a question; the first answer counts.
///
/// A question takes a text; if its widget lists options, one of them, by word or number. An approval takes `--action
/// approve` or `reject`, a review `accept` or `request_changes`, a request of a run one of its options; then the text is
/// your comment. What does not fit is refused and the question stays open. Stored is
/// {"action": …, "text"?: …, "params"?: …}.
#[derive(Debug, Args)]
struct AnswerArguments {
    /// As the list shows it.
    id: String,
    /// Your words; or the action itself.
    text: Option<String>,
    /// What you decide.
    #[arg(long)]
    action: Option<String>,
    /// Values for the question's form, a JSON object.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Who answers [default: the name git knows, else USER]
    #[arg(long = "as", value_name = "NAME")]
    by: Option<String>,
}

impl Inbox {
    pub(super) fn run(self, config: Config, given: &[given::Given]) -> Result<Exit, HostError> {
        let InboxOptions { remote, runs, json, project } = self.options;
        let hints = Hints::new(given);
        let door = door(remote, config)?;
        let desk = Desk::new(vec![
            ("cards", Box::new(Cards::new(Rc::clone(&door), hints.clone()))),
            (
                "requests of runs",
                Box::new(Runs::new(
                    Rc::clone(&door),
                    runs.as_deref().unwrap_or_default(),
                    hints.clone(),
                )),
            ),
        ]);
        let project = project.unwrap_or_default();
        match self.command.unwrap_or(InboxCommand::List) {
            InboxCommand::List => {
                let (open, now) = (desk.open(&project)?, Timestamp::now());
                match json {
                    true => output::json_text(&list_json(&open, now))?,
                    false => output::line(&render::list(&open, now))?,
                }
                // An empty list means nothing to a script if there may be more.
                Ok(if open.unread && open.rows.is_empty() { Exit::Machine } else { Exit::Done })
            }
            InboxCommand::Watch => watch::run(&desk, &*door, &project, json).map(|()| Exit::Done),
            InboxCommand::Show { id } => show(&desk, &hints, &id, json),
            InboxCommand::Answer(arguments) => {
                let AnswerArguments { id, text, action, params, by } = arguments;
                let given = Given {
                    action: action.as_deref(),
                    text: text.as_deref(),
                    params: params.as_deref(),
                };
                let by = by.filter(|by| !by.is_empty()).unwrap_or_else(person::here);
                told(&desk, &hints, &id, desk.answer(&id, &given, &by)?, json)
            }
            InboxCommand::Dismiss { id } => told(&desk, &hints, &id, desk.dismiss(&id)?, json),
        }
    }
}

/// To a running host if one is named, else to one in this process.
fn door(remote: RemoteOptions, config: Config) -> Result<Rc<dyn Door>, HostError> {
    match remote.open()? {
        Some(remote) => Ok(Rc::new(Outside::new(remote, config.app_dir.as_deref())?)),
        None => Ok(Rc::new(Inside::start(config)?)),
    }
}

fn show(desk: &Desk, hints: &Hints, id: &str, as_json: bool) -> Result<Exit, HostError> {
    let Some(item) = desk.item(id)? else { return told(desk, hints, id, None, as_json) };
    if !as_json {
        output::line(&render::item(&item, Timestamp::now()))?;
        return Ok(Exit::Done);
    }
    let history = item.history.iter().map(|past| {
        json!({"id": past.id, "createdAt": past.created_at, "outcome": past.outcome, "body": past.body})
    });
    let history: Vec<serde_json::Value> = history.collect();
    let text = format!("{{\"item\":{},\"history\":{}}}", item.json, json!(history));
    output::json_text(&text)?;
    Ok(Exit::Done)
}

/// Says what became of it; the exit code does too.
fn told(
    desk: &Desk,
    hints: &Hints,
    id: &str,
    outcome: Option<Outcome>,
    as_json: bool,
) -> Result<Exit, HostError> {
    let mut notes = Vec::new();
    let (exit, said, members) = match outcome {
        Some(Outcome::Done { said, json }) => (Exit::Done, said, format!("\"record\":{json}")),
        Some(Outcome::Faster { said, winner }) => (FASTER, said, format!("\"winner\":{winner}")),
        Some(Outcome::Misfit(said)) => (Exit::Usage, said, String::new()),
        None => {
            notes = desk.unread()?;
            match notes.is_empty() {
                true => {
                    let list = hints.line("list", &[]);
                    let said = format!("nothing has the id `{id}`: `{list}` shows what is open");
                    (Exit::Unknown, said, String::new())
                }
                // What cannot be read may have it.
                false => {
                    let said = format!("nothing that can be read has the id `{id}`");
                    (Exit::Machine, said, format!("\"notes\":{}", json!(notes)))
                }
            }
        }
    };
    if !as_json && exit == Exit::Done {
        output::line(&visible::line(&said))?;
    } else if !as_json {
        output::error(&visible::line(&said));
        notes.iter().for_each(|note| output::aside(&format!("note: {note}")));
    } else {
        let mut text = format!("{{\"ok\":{}", exit == Exit::Done);
        text.push_str(if exit == Exit::Done { ",\"message\":" } else { ",\"error\":" });
        quote(&said, &mut text);
        if !members.is_empty() {
            text.push(',');
            text.push_str(&members);
        }
        text.push('}');
        output::json_text(&text)?;
    }
    Ok(exit)
}

/// `{"items": […], "notes": […]}`.
fn list_json(open: &Open, now: Timestamp) -> String {
    let items: Vec<serde_json::Value> = open.rows.iter().map(|row| row.to_json(now)).collect();
    json!({"items": items, "notes": open.notes}).to_string()
}
