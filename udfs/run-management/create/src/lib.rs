//! `create`: a run waiting to start. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Appends a queued run and returns it. The caller chooses the id; a repeated one is appended again.
#[udf(reads("runs"), writes("runs"), columns(run_common::RUN_COLUMNS))]
fn create(
    ctx: &Context,
    /// Id of the run; stored as given.
    #[arg(default)]
    id: &str,
    /// Task the run works on.
    #[arg(default)]
    task_id: &str,
    /// What the agent is told.
    #[arg(default)]
    prompt: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["runs"])?;
    let run = Object::new()
        .set("id", id)
        .set("taskId", task_id)
        .set("prompt", prompt)
        .set("status", "queued")
        .set("createdAt", ctx.now())
        .set_null("finishedAt")
        .set_null("errorMessage")
        .set_null("errorFamily")
        .set_null("retryNotBefore")
        .set_null("summary")
        .set_null("costUsd")
        .set_null("usage")
        .set_null("model");
    let run = tx.collection("runs")?.push(run)?;
    tx.commit()?;
    Ok(Reply::record(run))
}
