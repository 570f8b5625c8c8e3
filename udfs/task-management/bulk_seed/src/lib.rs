//! `bulk_seed`: tasks and comments made elsewhere. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::seed;

/// Appends tasks and comments exactly as given; records whose id is known are skipped.
#[udf(reads("tasks", "comments"), writes("tasks", "comments"))]
fn bulk_seed(
    ctx: &Context,
    /// JSON array of tasks; empty = none.
    #[arg(default)]
    tasks: &str,
    /// JSON array of comments; empty = none.
    #[arg(default)]
    comments: &str,
) -> Result<Reply, UdfError> {
    let tasks = seed::parse("tasks", tasks)?;
    let comments = seed::parse("comments", comments)?;
    let tx = ctx.begin(&["comments", "tasks"])?;
    let tasks = seed::append(&mut tx.collection("tasks")?, &tasks)?;
    let comments = seed::append(&mut tx.collection("comments")?, &comments)?;
    tx.commit()?;
    Ok(Reply::json(Object::new().set("tasks", tasks).set("comments", comments)))
}
