//! `udf-host check`: whether operations keep what every operation promises.
//!
//! The calls run in a child process (`child`), since a bad operation may end it. The `parent` follows what that one
//! reports, says what was being tried when it ended, and starts another for the rest.

mod child;
mod parent;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use self::child::ChildOptions;
use super::{Exit, exit, output, progress, selection, visible};
use crate::Host;
use crate::check::{Finding, Rule, Verdict};
use crate::config::Config;
use crate::error::HostError;

/// Check that operations keep what every operation promises, and say what to do where they do not.
///
/// Descriptor and spec.md are complete and agree; each example of spec.md answers as written, once more too, and in
/// every lane; undeclared parameters are refused; odd values (empty, 1 MiB, NUL, deep JSON, …) crash nothing; a read
/// writes nothing, a write only what it declares. An answer that differs from call to call says so by a placeholder
/// in the example, as `<uuid>` or `<iso-ms>`. Calls work in folders of their own, never on your state, and without
/// the network. Exit code 1 when a rule is broken.
///
/// With --json: {"operations": [{"op", "holds", "findings": [{"rule", "verdict": "holds" | "broken" | "skipped",
/// "what": [TEXT], "remedy", "calls"}]}], "broken": NUMBER}.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Check {
    /// Which ones: `PROJECT` or `PROJECT/OP`.
    #[arg(value_name = "OPERATION", required_unless_present = "all")]
    operations: Vec<String>,
    /// Every operation there is.
    #[arg(long, conflicts_with = "operations")]
    all: bool,
    /// What one call may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    child: ChildOptions,
}

/// What is known of one operation.
#[derive(Debug, Serialize)]
struct Report {
    op: String,
    holds: bool,
    findings: Vec<Finding>,
}

impl Report {
    /// Every rule in order; those that nothing was found about were not looked at.
    fn new(op: String, mut findings: Vec<Finding>) -> Self {
        let holds = findings.iter().all(|finding| finding.verdict != Verdict::Broken);
        for rule in Rule::ALL {
            if !findings.iter().any(|finding| finding.rule == rule) {
                findings.push(Finding::skipped(rule, "it was not come to"));
            }
        }
        findings.sort_by_key(|finding| Rule::ALL.iter().position(|rule| *rule == finding.rule));
        Self { op, holds, findings }
    }

    fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.verdict == verdict)
    }

    fn calls(&self) -> usize {
        self.findings.iter().map(|finding| finding.calls).sum()
    }
}

impl Check {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let limit = Duration::from_secs(self.limit);
        if self.child.is_given() {
            return child::run(&self.child, &self.operations, config, limit);
        }
        let host = Host::start(config.clone())?;
        let names = if self.all { &[][..] } else { &self.operations };
        // A name that no folder has is told before anything is built.
        selection::select(&host, names)?;
        progress::until_settled(&host);
        let ops: Vec<String> = selection::select(&host, names)?
            .iter()
            .map(|entry| entry.address.to_string())
            .collect();
        drop(host);
        if ops.is_empty() {
            return Err(HostError::BadRequest {
                message: "there is no operation to check".to_owned(),
            });
        }
        let mut reports = Vec::with_capacity(ops.len());
        parent::run(&config, ops, limit, &mut |report| {
            let shown = if self.json { Ok(()) } else { show(&report) };
            reports.push(report);
            shown
        })?;
        let broken = reports.iter().filter(|report| !report.holds).count();
        if self.json {
            output::json(&json!({"operations": reports, "broken": broken}))?;
        } else if reports.len() > 1 {
            let calls: usize = reports.iter().map(Report::calls).sum();
            output::line(&match broken {
                0 => format!("all {} operations keep every rule, in {calls} calls", reports.len()),
                _ => format!("{broken} of {} operations break a rule", reports.len()),
            })?;
        }
        Ok(if broken == 0 { Exit::Done } else { Exit::Failed })
    }
}

/// One line for an operation that keeps all rules; for another what it breaks, how, and what to do.
fn show(report: &Report) -> Result<(), HostError> {
    if report.holds {
        let held = report.of(Verdict::Holds).count();
        return output::line(&format!(
            "{}: {held} rules hold, {} calls",
            report.op,
            report.calls()
        ));
    }
    output::line(&format!("{}:", report.op))?;
    for finding in report.of(Verdict::Broken) {
        for what in &finding.what {
            output::line(&format!("  {}: {}", finding.rule.name(), visible::cut(what, 600)))?;
        }
        output::line(&format!("    {}", finding.remedy))?;
    }
    Ok(())
}
