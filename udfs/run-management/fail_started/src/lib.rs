//! `fail_started`: the host of the agents went away. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Marks every started run as failed, all at one instant, and returns their ids in file order.
#[udf(reads("runs"), writes("runs"))]
fn fail_started(
    ctx: &Context,
    /// Why they failed; empty = null.
    #[arg(default)]
    error_message: &str,
) -> Result<Reply, UdfError> {
    run_common::run::sweep(ctx, "started", "failed", error_message)
}
