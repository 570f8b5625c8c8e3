//! `udf-host list`: which operations there are.

use clap::Args;
use serde_json::json;

use super::{Exit, exit, output, progress};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

/// List the operations, whether each can be called and why not.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct List {
    /// Print JSON, as `GET /api/udfs` answers it.
    #[arg(long)]
    json: bool,
}

impl List {
    /// Looks at what is there and builds nothing: a list should be quick.
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let host = Host::start(Config { no_build: true, ..config })?;
        progress::until_settled(&host);
        let catalog = &host.catalog;
        let (udfs, problems) = (catalog.list(), catalog.problems());
        if self.json {
            output::json(
                &json!({"udfs": udfs, "problems": problems, "progress": catalog.progress()}),
            )?;
            return Ok(Exit::Done);
        }
        let mut rows = Vec::new();
        for udf in &udfs {
            let doc = udf
                .descriptor
                .as_ref()
                .and_then(|descriptor| descriptor["doc"].as_str())
                .unwrap_or_default();
            let words = udf
                .reason
                .as_deref()
                .or(udf.lane_note.as_deref())
                .unwrap_or_else(|| doc.lines().next().unwrap_or_default());
            let address = format!("{}.{}.{}", udf.workspace, udf.project, udf.op);
            rows.push(vec![address, udf.state.to_owned(), words.to_owned()]);
        }
        output::table(&rows)?;
        for problem in problems {
            output::line(&format!(
                "{}: {}; {}",
                problem.place.display(),
                problem.reason,
                problem.remedy
            ))?;
        }
        Ok(Exit::Done)
    }
}
