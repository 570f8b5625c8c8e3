//! `udf-host widget verify FILE`: all queries of a widget's configuration, without a browser.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use json_text::{Json, Specials};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{Exit, exit, output, sql, visible};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;
use crate::sql::operations::Operations;
use crate::sql::widget::{self, Outcome};
use crate::sql::{Addressed, Dispatched};

/// Look at widgets.
#[derive(Debug, Args)]
pub(super) struct Widget {
    #[command(subcommand)]
    command: WidgetCommand,
}

#[derive(Debug, Subcommand)]
enum WidgetCommand {
    Verify(Verify),
}

/// Run every query of a widget and say how each went.
///
/// The file holds the configuration, as `POST /api/exec/widget` takes it under `config`. Exit code 0: every query has an
/// answer (warnings do not count); 1: at least one has none.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
struct Verify {
    /// The file; `-` is standard input.
    file: PathBuf,
    /// Values of `$name`, as a JSON object; they win over the defaults in the file.
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    params: String,
    /// The project that short names are of [default: the one whose `widgets/` folder holds the file, else
    /// task-management]
    #[arg(long)]
    project: Option<String>,
    /// The workspace of that project.
    #[arg(long, default_value = "_core")]
    workspace: String,
    /// Print JSON: the whole reply.
    #[arg(long)]
    json: bool,
}

impl Widget {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let WidgetCommand::Verify(verify) = self.command;
        verify.run(config)
    }
}

impl Verify {
    fn run(self, config: Config) -> Result<Exit, HostError> {
        let text = read(&self.file)?;
        let config_of_widget = configuration(&text).map_err(|error| HostError::BadRequest {
            message: format!(
                "`{}` is no widget configuration, a JSON object: {error}",
                self.file.display()
            ),
        })?;
        let wrapped = config_of_widget.get("config").is_some_and(Value::is_object);
        let widget = widget::Widget::new(config_of_widget, sql::params(&self.params)?);
        if widget.is_empty() && wrapped {
            return Err(HostError::BadRequest {
                message: format!(
                    "`{}` has no queries of its own, only a `config`: the file holds the widget itself, which is what \
                     stands under `config` in a request",
                    self.file.display()
                ),
            });
        }
        let host = Host::start(config)?;
        let operations = Dispatched::new(&host, "widget");
        let project = match &self.project {
            Some(project) => project.clone(),
            None => project_of(&self.file)
                .filter(|project| operations.project(&self.workspace, project).is_ok())
                .unwrap_or_else(|| "task-management".to_owned()),
        };
        let at = Addressed { workspace: &self.workspace, project: &project };
        crate::sql::addressed(&operations, at)?;
        let outcome = widget.run(&host.sql, &operations, at, None);
        if self.json {
            output::json_text(&outcome.to_json())?;
        } else {
            report(&outcome)?;
        }
        let failed = outcome.answers.iter().any(|(_, answer)| answer.is_err());
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

/// A JSON object, as deep as one may be that is sent to a host.
fn configuration(text: &str) -> Result<Map<String, Value>, String> {
    json_text::check(text, Specials::Refuse).map_err(|error| error.to_string())?;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Map::deserialize(&mut reader).map_err(|error| error.to_string())
}

fn read(file: &Path) -> Result<String, HostError> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map_err(|error| HostError::BadRequest {
            message: format!("cannot read the configuration from standard input: {error}"),
        })?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| HostError::BadRequest {
        message: format!("cannot read `{}`: {error}", file.display()),
    })
}

/// `<project>/widgets/<file>`: the project.
fn project_of(file: &Path) -> Option<String> {
    let file = file.canonicalize().ok()?;
    let folder = file.parent()?;
    let project = folder.parent()?.file_name()?;
    (folder.file_name()? == "widgets").then(|| project.to_string_lossy().into_owned())
}

fn report(outcome: &Outcome) -> Result<(), HostError> {
    let mut rows = Vec::new();
    for (id, answer) in &outcome.answers {
        rows.push(match answer {
            Ok(answer) => {
                let count =
                    format!("{} {}", answer.count, if answer.count == 1 { "row" } else { "rows" });
                vec![
                    id.clone(),
                    "ok".to_owned(),
                    format!("{count} of {}", answer.names().collect::<Vec<_>>().join(", ")),
                ]
            }
            Err(error) => vec![
                id.clone(),
                "failed".to_owned(),
                visible::line(&error.to_string()).into_owned(),
            ],
        });
    }
    output::table(&rows)?;
    for warning in &outcome.warnings {
        let text = warning.to_string();
        let words = Json::trusted(&text)
            .get("message")
            .and_then(Json::as_str)
            .unwrap_or_default()
            .into_owned();
        output::line(&format!("warning: {}", visible::line(&words)))?;
    }
    if outcome.answers.is_empty() {
        output::line("the widget has no queries")?;
    }
    Ok(())
}
