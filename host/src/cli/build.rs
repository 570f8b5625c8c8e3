//! `udf-host build`: everything built, checked and loaded once, so that the next start finds it ready.

use clap::Args;
use serde_json::json;

use super::{Exit, exit, output, progress};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;

/// Build what is missing or stale, and check that every operation loads.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Build {
    /// Print JSON: counts, and the operations that cannot be called.
    #[arg(long)]
    json: bool,
}

impl Build {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let host = Host::start(config)?;
        if !progress::until_settled(&host) {
            return Err(HostError::Internal {
                message: format!(
                    "the build did not end within {} s",
                    progress::BUILD_TIME.as_secs()
                ),
                detail: host.catalog.progress().note,
            });
        }
        let (progress, problems) = (host.catalog.progress(), host.catalog.problems());
        let refused: Vec<_> =
            host.catalog.list().into_iter().filter(|udf| udf.state == "refused").collect();
        let exit =
            if refused.is_empty() && problems.is_empty() { Exit::Done } else { Exit::Failed };
        if self.json {
            let counts = json!({"total": progress.total, "ready": progress.ready, "refused": refused, "problems": problems});
            output::json(&counts)?;
            return Ok(exit);
        }
        for udf in &refused {
            let (reason, remedy) = (
                udf.reason.as_deref().unwrap_or_default(),
                udf.remedy.as_deref().unwrap_or_default(),
            );
            output::line(&format!(
                "{}.{}.{}: {reason}; {remedy}",
                udf.workspace, udf.project, udf.op
            ))?;
            if let Some(detail) = &udf.detail {
                output::line(detail)?;
            }
        }
        for problem in &problems {
            output::line(&format!(
                "{}: {}; {}",
                problem.place.display(),
                problem.reason,
                problem.remedy
            ))?;
        }
        output::line(&format!("{} of {} operations are ready", progress.ready, progress.total))?;
        Ok(exit)
    }
}
