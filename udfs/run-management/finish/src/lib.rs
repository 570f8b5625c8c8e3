//! `finish`: how a run ended. Contract and examples: `spec.md`.

use run_common::{params, run};
use sdk::prelude::*;

/// Records how a run ended and returns it. A second call overwrites the first; what is left empty becomes
/// null. On any error the run stays as it was.
#[udf(reads("runs"), writes("runs"), columns(run_common::RUN_COLUMNS))]
#[expect(clippy::too_many_arguments, reason = "one parameter per field of the contract")]
fn finish(
    ctx: &Context,
    /// Id of the run.
    #[arg(default)]
    id: &str,
    /// `completed`, `failed` or `cancelled`; any text is stored.
    #[arg(default)]
    status: &str,
    /// What went wrong; empty = null.
    #[arg(default)]
    error_message: &str,
    /// Kind of the failure; empty = null.
    #[arg(default)]
    error_family: &str,
    /// Earliest time of another try; empty = null.
    #[arg(default)]
    retry_not_before: &str,
    /// What was done, for the human; empty = null.
    #[arg(default)]
    summary: &str,
    /// Cost in US dollars as decimal text; empty = null.
    #[arg(default)]
    cost_usd: &str,
    /// Tokens used and the like, as JSON text of any kind; empty = null.
    #[arg(default)]
    usage_json: &str,
    /// Model that ran; empty = null.
    #[arg(default)]
    model: &str,
) -> Result<Reply, UdfError> {
    run::change(ctx, id, |run| {
        let cost = params::cost(cost_usd)?;
        let usage =
            JsonText::parse(text::non_empty(usage_json).unwrap_or("null")).map_err(|fault| {
                UdfError::raised(format!("finish `usage_json` is not valid JSON: {fault}"))
            })?;
        Ok(run
            .edit()
            .set("status", status)
            .set("errorMessage", text::non_empty(error_message))
            .set("errorFamily", text::non_empty(error_family))
            .set("retryNotBefore", text::non_empty(retry_not_before))
            .set("summary", text::non_empty(summary))
            .set("model", text::non_empty(model))
            .set("costUsd", cost)
            .set_json("usage", usage)
            .set("finishedAt", ctx.now()))
    })
}
