//! `create`: a new task. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::task;

/// Creates a task and returns it, numbered on within its project. A known id returns the stored task of
/// that id, in whatever project it is, and writes nothing.
#[udf(reads("tasks"), writes("tasks"), columns(task_common::TASK_COLUMNS))]
#[expect(clippy::too_many_arguments, reason = "one parameter per field of the contract")]
fn create(
    ctx: &Context,
    /// Project of the task; stored as given.
    #[arg(default)]
    project: &str,
    /// One line saying what is to be done.
    #[arg(default)]
    title: &str,
    /// The whole assignment; empty = the title.
    #[arg(default)]
    description: &str,
    /// State it starts in; an explicitly empty one is stored as such.
    #[arg(default = "pending")]
    status: &str,
    /// Id of the task it is a part of; empty = null.
    #[arg(default)]
    parent_id: &str,
    /// Who created it.
    #[arg(default = "user")]
    created_by: &str,
    /// How it is to be worked on.
    #[arg(default = "standard")]
    work_mode: &str,
    /// Id of the task; empty = a new one is made up.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["tasks"])?;
    let mut tasks = tx.collection("tasks")?;
    if let Some(known) = tasks.get(id).filter(|_| !id.is_empty()) {
        return Ok(Reply::record(known));
    }
    let number = task::next_number(&tasks.matching("project", project))?;
    let id = if id.is_empty() { ctx.mint("task_") } else { id.to_owned() };
    let now = ctx.now();
    let task = Object::new()
        .set("id", id)
        .set("project", project)
        .set_json("number", number)
        .set("title", title)
        .set("description", text::non_empty(description).unwrap_or(title))
        .set("status", status)
        .set_null("agentId")
        .set("createdBy", created_by)
        .set("createdAt", now)
        .set("updatedAt", now)
        .set("parentId", text::non_empty(parent_id))
        .set("workMode", work_mode)
        .set("blockedBy", Vec::<&str>::new());
    let task = tasks.push(task)?;
    tx.commit()?;
    Ok(Reply::record(task))
}
