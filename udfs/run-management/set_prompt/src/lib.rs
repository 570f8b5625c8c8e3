//! `set_prompt`: what the agent is told. Contract and examples: `spec.md`.

use run_common::run;
use sdk::prelude::*;

/// Replaces the prompt of a run in any status and returns the run.
#[udf(reads("runs"), writes("runs"), columns(run_common::RUN_COLUMNS))]
fn set_prompt(
    ctx: &Context,
    /// Id of the run.
    #[arg(default)]
    id: &str,
    /// The new prompt; stored as given, empty text included.
    #[arg(default)]
    prompt: &str,
) -> Result<Reply, UdfError> {
    run::change(ctx, id, |run| Ok(run.edit().set("prompt", prompt)))
}
