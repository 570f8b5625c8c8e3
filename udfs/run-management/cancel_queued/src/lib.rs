//! `cancel_queued`: nothing that waits shall start. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Marks every queued run as cancelled, all at one instant, and returns their ids in file order.
#[udf(reads("runs"), writes("runs"))]
fn cancel_queued(
    ctx: &Context,
    /// Why they were cancelled; empty = null.
    #[arg(default)]
    error_message: &str,
) -> Result<Reply, UdfError> {
    run_common::run::sweep(ctx, "queued", "cancelled", error_message)
}
