//! `udf-host sql 'SELECT …'`: one statement over operations, without a running host.

use clap::{Args, Subcommand};
use json_text::{Json, Kind};

use super::{Exit, exit, output, visible};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;
use crate::sql::engine::duckdb::install;
use crate::sql::{Addressed, Answer, Dispatched, Request};

/// Run one SQL statement; its tables are answers of operations, written `{{op}}` or `{{project.op?key=value}}`.
///
/// No running host is needed; one that runs on the same files does not mind. Without `--project` a short name is looked
/// for in all projects.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Sql {
    #[command(subcommand)]
    command: Option<SqlCommand>,
    /// The statement, for example `SELECT status, count(*) AS n FROM {{list_cards}} GROUP BY status`.
    #[arg(required = true)]
    statement: Option<String>,
    /// Values of `$name`, as a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    params: String,
    /// The project that short names are of.
    #[arg(long)]
    project: Option<String>,
    /// The workspace of that project.
    #[arg(long, default_value = "_core")]
    workspace: String,
    /// Print JSON: {"columns": […], "rows": […]}.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SqlCommand {
    /// Fetch the library of the duckdb engine with `npm` into the host's cache.
    InstallDuckdb,
}

impl Sql {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let Some(sql) = self.statement else {
            let place = install::install(&config.cache_dir)
                .map_err(|reason| HostError::Internal { message: reason, detail: String::new() })?;
            output::line(&format!(
                "{} is there; choose it with `--sql-engine duckdb`",
                place.display()
            ))?;
            return Ok(Exit::Done);
        };
        let request = Request { sql, params: params(&self.params)?, ..Request::default() };
        let host = Host::start(config)?;
        let operations = Dispatched::new(&host, "sql");
        let operations = match &self.project {
            Some(_) => operations,
            None => operations.anywhere(),
        };
        let project = self.project.as_deref().unwrap_or_default();
        let at = Addressed { workspace: &self.workspace, project };
        let answer = host.sql.run(&operations, at, &request)?;
        if self.json {
            let mut text = String::new();
            answer.write(&mut text);
            output::json_text(&text)?;
        } else {
            print(&answer)?;
        }
        Ok(Exit::Done)
    }
}

/// A JSON object from the command line.
pub(super) fn params(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, HostError> {
    serde_json::from_str(text).map_err(|error| HostError::BadRequest {
        message: format!("`--params` must be a JSON object: {error}"),
    })
}

/// The rows in aligned columns, for a person.
fn print(answer: &Answer) -> Result<(), HostError> {
    let mut rows =
        vec![answer.names().map(|name| visible::line(name).into_owned()).collect::<Vec<_>>()];
    rows.push(answer.names().map(|name| "-".repeat(visible::width(name).max(1))).collect());
    for row in Json::trusted(&answer.rows).items() {
        rows.push(row.fields().map(|(_, value)| cell(value)).collect());
    }
    output::table(&rows)?;
    output::line(&format!("({} {})", answer.count, if answer.count == 1 { "row" } else { "rows" }))
}

fn cell(value: Json<'_>) -> String {
    match value.kind() {
        Kind::Null => String::new(),
        Kind::String => visible::line(&value.as_str().unwrap_or_default()).into_owned(),
        Kind::Bool | Kind::Number | Kind::Array | Kind::Object => {
            visible::line(value.text()).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_that_steers_nothing() {
        for (json, want) in [
            ("null", ""),
            ("\"a\\nb\\u001b[31m\"", "a␊b␛[31m"),
            ("\"\\u202ea\"", "<U+202E>a"),
            ("{\"a\":1}", "{\"a\":1}"),
            ("12", "12"),
        ] {
            assert_eq!(cell(Json::trusted(json)), want);
        }
    }
}
