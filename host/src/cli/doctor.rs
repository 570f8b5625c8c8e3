//! `udf-host doctor`: what is wrong, where, and what to do about it.

mod operations;
mod store;

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{Exit, exit, output, progress};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

/// Check operations, their specs, the cache and the state folder. Changes nothing and builds nothing.
///
/// Exit code 1 when there is a problem; a note alone is none.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Doctor {
    /// Print JSON: a list of findings.
    #[arg(long)]
    json: bool,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    severity: Severity,
    /// The operation or file.
    place: String,
    what: String,
    remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Something does not work, or will not.
    Problem,
    /// Good to know.
    Note,
}

impl Finding {
    fn problem(
        place: impl ToString,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            severity: Severity::Problem,
            place: place.to_string(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    fn note(place: impl ToString, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { severity: Severity::Note, ..Finding::problem(place, what, remedy) }
    }
}

/// What keeps records from being written below `app_dir`, and what to do about it, in one line.
pub(super) fn folder_fault(app_dir: &Path) -> Option<String> {
    store::check_folder(app_dir)
        .map(|Finding { place, what, remedy, .. }| format!("{place}: {what}; {remedy}"))
}

impl Doctor {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let app_dir = config.app_dir.clone().unwrap_or_else(|| core_store::resolve_app_dir(None));
        let cache_dir = config.cache_dir.clone();
        let host = Host::start(Config { no_build: true, ..config })?;
        progress::until_settled(&host);
        let mut findings = operations::check(&host);
        findings.extend(store::check_cache(&cache_dir));
        findings.extend(store::check(&app_dir, &operations::writers(&host)));
        let problems =
            findings.iter().filter(|finding| finding.severity == Severity::Problem).count();
        if self.json {
            output::json(
                &json!({"problems": problems, "findings": findings, "appDir": app_dir.to_string_lossy()}),
            )?;
        } else {
            for finding in &findings {
                let mark = match finding.severity {
                    Severity::Problem => "problem",
                    Severity::Note => "note",
                };
                output::line(&format!(
                    "{mark}: {}: {}\n  {}",
                    finding.place, finding.what, finding.remedy
                ))?;
            }
            let ready = host.catalog.progress();
            output::line(&format!(
                "{} of {} operations are ready; state folder {}; {}",
                ready.ready,
                ready.total,
                app_dir.display(),
                output::count(problems, "problem")
            ))?;
        }
        Ok(if problems == 0 { Exit::Done } else { Exit::Failed })
    }
}
