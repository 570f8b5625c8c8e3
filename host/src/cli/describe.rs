//! `udf-host describe OP`: one operation, its parameters and its spec.

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, exit, operation, output, progress};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;
use crate::plugins::EntryView;

/// Show one operation: its state, its parameters and its spec.md.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Describe {
    /// `op`, `project.op` or `workspace.project.op`.
    op: String,
    /// Print JSON, as `GET /api/udfs/{workspace}/{project}/{op}` answers it.
    #[arg(long)]
    json: bool,
}

impl Describe {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let host = Host::start(config)?;
        let address = operation::find(&host, &self.op)?;
        progress::until(&host, |_| {
            host.catalog.entry(&address).is_some_and(|entry| entry.view().state != "building")
        });
        let entry = host.catalog.find(&address.workspace, &address.project, &address.op)?;
        let view = entry.view();
        if self.json {
            let mut value = json!(view);
            value["spec"] = Value::from(entry.spec.as_str());
            output::json(&value)?;
            return Ok(Exit::Done);
        }
        output::line(&format!("{address}  {}", view.state))?;
        if let (Some(reason), Some(remedy)) = (&view.reason, &view.remedy) {
            output::line(&format!("{reason}; {remedy}"))?;
        }
        if let Some(detail) = &view.detail {
            output::line(detail)?;
        }
        parameters(&view)?;
        if !entry.spec.is_empty() {
            output::line("")?;
            output::line(entry.spec.trim_end())?;
        }
        Ok(Exit::Done)
    }
}

fn parameters(view: &EntryView) -> Result<(), HostError> {
    let Some(params) =
        view.descriptor.as_ref().and_then(|descriptor| descriptor["params"].as_array())
    else {
        return Ok(());
    };
    let text = |param: &Value, key: &str| param[key].as_str().unwrap_or_default().to_owned();
    let rows: Vec<Vec<String>> = params
        .iter()
        .map(|param| {
            let default = if param["required"] == true {
                "required".to_owned()
            } else {
                param["default"].to_string()
            };
            vec![
                format!("  {}", text(param, "name")),
                text(param, "type"),
                default,
                text(param, "doc"),
            ]
        })
        .collect();
    output::table(&rows)
}
