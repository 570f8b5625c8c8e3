//! `mark_started`: the agent is at work. Contract and examples: `spec.md`.

use run_common::run;
use sdk::prelude::*;

/// Sets the status of a run to `started`, whatever it was, and returns the run.
#[udf(reads("runs"), writes("runs"), columns(run_common::RUN_COLUMNS))]
fn mark_started(
    ctx: &Context,
    /// Id of the run.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    run::change(ctx, id, |run| Ok(run.edit().set("status", "started")))
}
