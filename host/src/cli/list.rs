//! `udf-host list`: which operations there are, and how they fare.

use clap::Args;
use serde_json::{Value, json};

use super::figures::{built, bytes, number, short_hash, text, time};
use super::remote::{Remote, RemoteOptions};
use super::{Exit, exit, output, progress, visible};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

/// List the operations, whether each can be called and why not.
///
/// Without --host: what a host that is started here would serve, as far as it is built; nothing is built. With --host:
/// what that one serves, how many calls each operation had, how many failed, how long they took, and how many of its
/// builds are open in the host and its workers.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct List {
    #[command(flatten)]
    remote: RemoteOptions,
    /// Print JSON, as `GET /api/udfs` answers it.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let (list, running) = match self.remote.open()? {
            Some(remote) => (running(&remote)?, true),
            None => (here(config)?, false),
        };
        if self.json {
            output::json(&list)?;
            return Ok(Exit::Done);
        }
        let none = Vec::new();
        let udfs = list["udfs"].as_array().unwrap_or(&none);
        let mut rows = vec![heading(running)];
        rows.extend(udfs.iter().map(|udf| row(udf, running)));
        output::table(&rows)?;
        for problem in list["problems"].as_array().unwrap_or(&none) {
            let line = format!(
                "{}: {}; {}",
                text(problem, "place"),
                text(problem, "reason"),
                text(problem, "remedy")
            );
            output::line(&line)?;
        }
        Ok(Exit::Done)
    }
}

/// Looks at what is there and builds nothing: a list should be quick.
fn here(config: Config) -> Result<Value, HostError> {
    let host = Host::start(Config { no_build: true, ..config })?;
    progress::until_settled(&host);
    let catalog = &host.catalog;
    Ok(json!({
        "udfs": catalog.list(),
        "problems": catalog.problems(),
        "progress": catalog.progress(),
    }))
}

fn running(remote: &Remote) -> Result<Value, HostError> {
    remote.data("/api/udfs")
}

fn heading(running: bool) -> Vec<String> {
    let counters: &[&str] = if running { &["CALLS", "ERRORS", "P50", "P99", "OPEN"] } else { &[] };
    ["OPERATION", "STATE", "LANE"]
        .iter()
        .chain(counters)
        .chain(&["VERSION", "BUILT", "HASH", "ABOUT"])
        .map(ToString::to_string)
        .collect()
}

fn row(udf: &Value, running: bool) -> Vec<String> {
    let address =
        format!("{}.{}.{}", text(udf, "workspace"), text(udf, "project"), text(udf, "op"));
    let mut cells = vec![address, state(udf), text(udf, "lane")];
    if running {
        cells.extend([number(udf, "calls"), number(udf, "errors")]);
        cells.extend([time(&udf["p50_us"]), time(&udf["p99_us"]), open(udf)]);
    }
    let doc = || udf["descriptor"]["doc"].as_str().and_then(|doc| doc.lines().next());
    let words = [&udf["reason"], &udf["update"]["reason"], &udf["lane_note"]];
    let about = words.into_iter().find_map(|words| words.as_str()).or_else(doc).unwrap_or_default();
    cells.extend([text(udf, "version"), built(&udf["built_at"]), short_hash(udf)]);
    for cell in &mut cells {
        if cell.is_empty() {
            "-".clone_into(cell);
        }
    }
    cells.push(visible::line(about).into_owned());
    cells
}

/// How many builds of it are open, and their bytes.
fn open(udf: &Value) -> String {
    match udf["versions"].as_u64() {
        None | Some(0) => String::new(),
        Some(many) => format!("{many} ({})", bytes(&udf["version_bytes"])),
    }
}

/// A newer version that is on its way, or failed, shows beside the one that answers.
fn state(udf: &Value) -> String {
    let state = text(udf, "state");
    match udf["update"]["state"].as_str() {
        Some(update) => format!("{state} (update {})", visible::line(update)),
        None => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_all_and_steers_no_terminal() {
        let udf = json!({
            "workspace": "w", "project": "p", "op": "o", "state": "ready", "lane": "inline",
            "calls": 3, "errors": 1, "p50_us": 5, "p99_us": 2_000, "versions": 2, "version_bytes": 1_900_000,
            "version": "0.1.0", "built_at": 0, "hash": "0123456789abcdef",
            "descriptor": {"doc": "Does \u{1b}[31mit.\nAnd more."},
        });
        let shown = row(&udf, true);
        assert_eq!(
            shown,
            [
                "w.p.o",
                "ready",
                "inline",
                "3",
                "1",
                "5 µs",
                "2.00 ms",
                "2 (1.8 MiB)",
                "0.1.0",
                "1970-01-01 00:00:00Z",
                "0123456789ab",
                "Does ␛[31mit."
            ]
        );
        assert_eq!(shown.len(), heading(true).len());
        let mut newer = udf;
        newer["update"] = json!({"state": "failed", "reason": "it does not compile: no `x`"});
        let shown = row(&newer, true);
        assert_eq!(shown[1], "ready (update failed)");
        assert_eq!(shown.last().unwrap(), "it does not compile: no `x`");
        let refused = json!({"workspace": "w", "project": "p", "op": "o", "state": "refused",
            "lane": "inline", "reason": "it has no spec.md", "calls": 0, "errors": 0});
        let shown = row(&refused, false);
        assert_eq!(shown, ["w.p.o", "refused", "inline", "-", "-", "-", "it has no spec.md"]);
        assert_eq!(shown.len(), heading(false).len());
    }
}
