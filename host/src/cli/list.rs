//! `udf-host list`: which operations there are, and how they fare.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::remote::{Remote, RemoteOptions};
use super::{Exit, exit, output, progress, visible};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

/// List the operations, whether each can be called and why not.
///
/// Without --host: what a host that is started here would serve, as far as it is built; nothing is built. With --host:
/// what that one serves, and how many calls each operation had, how many failed, and how long they took.
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
    let envelope = remote.get("/api/udfs")?;
    let mut envelope: Value =
        serde_json::from_slice(&envelope).map_err(|error| HostError::Internal {
            message: "the host's list cannot be read".to_owned(),
            detail: error.to_string(),
        })?;
    Ok(envelope["data"].take())
}

fn heading(running: bool) -> Vec<String> {
    let counters: &[&str] = if running { &["CALLS", "ERRORS", "P50", "P99"] } else { &[] };
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
        cells.extend([time(&udf["p50_us"]), time(&udf["p99_us"])]);
    }
    let doc = || udf["descriptor"]["doc"].as_str().and_then(|doc| doc.lines().next());
    let about =
        udf["reason"].as_str().or(udf["lane_note"].as_str()).or_else(doc).unwrap_or_default();
    let hash: String = text(udf, "hash").chars().take(12).collect();
    cells.extend([text(udf, "version"), built(&udf["built_at"]), hash]);
    for cell in &mut cells {
        if cell.is_empty() {
            "-".clone_into(cell);
        }
    }
    cells.push(visible::line(about).into_owned());
    cells
}

/// A newer version that is on its way, or failed, shows beside the one that answers.
fn state(udf: &Value) -> String {
    let state = text(udf, "state");
    match udf["update"]["state"].as_str() {
        Some(update) => format!("{state} (update {})", visible::line(update)),
        None => state,
    }
}

/// What the list of a running host says, which may be any program.
fn text(of: &Value, key: &str) -> String {
    visible::line(of[key].as_str().unwrap_or_default()).into_owned()
}

fn number(of: &Value, key: &str) -> String {
    of[key].as_u64().map(|number| number.to_string()).unwrap_or_default()
}

/// Microseconds in three digits and the unit that fits.
fn time(micros: &Value) -> String {
    let Some(micros) = micros.as_u64() else { return String::new() };
    let seconds = Duration::from_micros(micros).as_secs_f64();
    let (value, unit) = match micros {
        0..1_000 => return format!("{micros} µs"),
        1_000..1_000_000 => (seconds * 1e3, "ms"),
        1_000_000.. => (seconds, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

fn built(seconds: &Value) -> String {
    let moment = seconds.as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map(|moment| format!("{:.0}", moment).replace('T', " ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_unit_that_fits() {
        for (micros, want) in [
            (json!(7), "7 µs"),
            (json!(999), "999 µs"),
            (json!(1_234), "1.23 ms"),
            (json!(56_789), "56.8 ms"),
            (json!(345_678), "346 ms"),
            (json!(2_500_000), "2.50 s"),
            (json!(null), ""),
        ] {
            assert_eq!(time(&micros), want);
        }
        assert_eq!(built(&json!(1_700_000_000)), "2023-11-14 22:13:20Z");
        assert_eq!(built(&json!(null)), "");
    }

    #[test]
    fn a_row_says_all_and_steers_no_terminal() {
        let udf = json!({
            "workspace": "w", "project": "p", "op": "o", "state": "ready", "lane": "inline",
            "update": {"state": "failed"}, "calls": 3, "errors": 1, "p50_us": 5, "p99_us": 2_000,
            "version": "0.1.0", "built_at": 0, "hash": "0123456789abcdef",
            "descriptor": {"doc": "Does \u{1b}[31mit.\nAnd more."},
        });
        let shown = row(&udf, true);
        assert_eq!(
            shown,
            [
                "w.p.o",
                "ready (update failed)",
                "inline",
                "3",
                "1",
                "5 µs",
                "2.00 ms",
                "0.1.0",
                "1970-01-01 00:00:00Z",
                "0123456789ab",
                "Does ␛[31mit."
            ]
        );
        assert_eq!(shown.len(), heading(true).len());
        let refused = json!({"workspace": "w", "project": "p", "op": "o", "state": "refused",
            "lane": "inline", "reason": "it has no spec.md", "calls": 0, "errors": 0});
        let shown = row(&refused, false);
        assert_eq!(shown, ["w.p.o", "refused", "inline", "-", "-", "-", "it has no spec.md"]);
        assert_eq!(shown.len(), heading(false).len());
    }
}
