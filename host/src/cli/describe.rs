//! `udf-host describe OP`: one operation, its parameters and its spec.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::figures::{built, bytes, short_hash, text};
use super::remote::{Remote, RemoteOptions};
use super::{Exit, exit, operation, output, progress, visible};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;
use crate::plugins::Address;

/// Show one operation: its state, its parameters and its spec.md.
///
/// With --host: as that host has it, with what became of a newer version, and how many of its builds are open.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Describe {
    /// `op`, `project.op` or `workspace.project.op`.
    op: String,
    #[command(flatten)]
    remote: RemoteOptions,
    /// Print JSON, as `GET /api/udfs/{workspace}/{project}/{op}` answers it.
    #[arg(long)]
    json: bool,
}

impl Describe {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let udf = match self.remote.open()? {
            Some(remote) => running(&remote, &self.op)?,
            None => here(config, &self.op)?,
        };
        if self.json {
            output::json(&udf)?;
            return Ok(Exit::Done);
        }
        let address = ["workspace", "project", "op"].map(|part| text(&udf, part)).join(".");
        output::line(&format!("{address}  {}", text(&udf, "state")))?;
        output::line(&facts(&udf))?;
        if let Some(note) = udf["lane_note"].as_str() {
            output::line(&visible::line(note))?;
        }
        refused(&udf, "")?;
        match udf["update"]["state"].as_str() {
            Some("failed") => {
                refused(&udf["update"], "a newer version failed, this one answers: ")?
            }
            Some(_) => output::line("a newer version is being built")?,
            None => {}
        }
        parameters(&udf)?;
        let spec = udf["spec"].as_str().unwrap_or_default();
        if !spec.is_empty() {
            output::line("")?;
            visible::lines(spec.trim_end()).try_for_each(|line| output::line(&line))?;
        }
        Ok(Exit::Done)
    }
}

/// As a host that is started here has it; it is built if need be.
fn here(config: Config, op: &str) -> Result<Value, HostError> {
    let host = Host::start(config)?;
    let address = operation::find(&host, op)?;
    progress::until(&host, |_| {
        host.catalog.entry(&address).is_some_and(|entry| entry.is_decided())
    });
    let entry = host.catalog.find(&address.workspace, &address.project, &address.op)?;
    let mut value = json!(entry.view());
    value["spec"] = Value::from(entry.spec.as_str());
    Ok(value)
}

fn running(remote: &Remote, op: &str) -> Result<Value, HostError> {
    let list = remote.data("/api/udfs")?;
    let known: Vec<Address> = list["udfs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|udf| {
            let part = |key: &str| udf[key].as_str();
            Some(Address::new(part("workspace")?, part("project")?, part("op")?))
        })
        .collect();
    let Address { workspace, project, op } = operation::choose(&known, op)?;
    // A folder that is refused may have any name.
    let [workspace, project, op] = [workspace, project, op]
        .map(|part| utf8_percent_encode(&part, NON_ALPHANUMERIC).to_string());
    remote.data(&format!("/api/udfs/{workspace}/{project}/{op}"))
}

/// What tells this version from others, and where it is.
fn facts(udf: &Value) -> String {
    let mut facts = vec![format!("lane {}", text(udf, "lane"))];
    for (name, value) in [
        ("version", text(udf, "version")),
        ("built", built(&udf["built_at"])),
        ("hash", short_hash(udf)),
    ] {
        if !value.is_empty() {
            facts.push(format!("{name} {value}"));
        }
    }
    match udf["versions"].as_u64() {
        None | Some(0) => {}
        Some(many) => {
            facts.push(format!("{many} builds open ({})", bytes(&udf["version_bytes"])));
        }
    }
    facts.join(", ")
}

/// Why a version cannot be called, what was compared, and the whole story.
fn refused(of: &Value, before: &str) -> Result<(), HostError> {
    let (Some(reason), Some(remedy)) = (of["reason"].as_str(), of["remedy"].as_str()) else {
        return Ok(());
    };
    output::line(&format!("{before}{}; {}", visible::line(reason), visible::line(remedy)))?;
    if let (Some(expected), Some(found)) = (of["expected"].as_str(), of["found"].as_str()) {
        let (expected, found) = (visible::line(expected), visible::line(found));
        output::line(&format!("  expected {expected}, found {found}"))?;
    }
    for file in of["files"].as_array().into_iter().flatten() {
        output::line(&format!("  {}", visible::line(file.as_str().unwrap_or_default())))?;
    }
    match of["detail"].as_str() {
        Some(detail) => visible::lines(detail).try_for_each(|line| output::line(&line)),
        None => Ok(()),
    }
}

fn parameters(udf: &Value) -> Result<(), HostError> {
    let Some(params) = udf["descriptor"]["params"].as_array() else { return Ok(()) };
    let rows: Vec<Vec<String>> = params
        .iter()
        .map(|param| {
            let default = if param["required"] == true {
                "required".to_owned()
            } else {
                visible::line(&param["default"].to_string()).into_owned()
            };
            vec![
                format!("  {}", text(param, "name")),
                text(param, "type"),
                default,
                param["doc"].as_str().map(one_line).unwrap_or_default(),
            ]
        })
        .collect();
    output::table(&rows)
}

fn one_line(doc: &str) -> String {
    visible::line(&doc.lines().map(str::trim).collect::<Vec<_>>().join(" ")).into_owned()
}
