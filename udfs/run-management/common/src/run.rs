//! The run of an agent on a task.

use std::collections::HashSet;

use sdk::prelude::*;

/// Columns a list of runs has in SQL, also when it is empty (the sql contract §5).
pub const COLUMNS: &[Column] = &[
    Column::text("id"),
    Column::text("taskId"),
    Column::text("prompt"),
    Column::text("status"),
    Column::text("createdAt"),
    Column::text("finishedAt"),
    Column::text("errorMessage"),
    Column::text("errorFamily"),
    Column::text("retryNotBefore"),
    Column::text("summary"),
    Column::float("costUsd"),
    Column::json("usage"),
    Column::text("model"),
];

/// Changes the first run with this id and answers with it, or with `not found`. An error of `change`
/// leaves everything as it was.
///
/// # Errors
/// That of `change`, or the store refuses.
pub fn change(
    ctx: &Context,
    id: &str,
    change: impl FnOnce(&Record) -> Result<ObjectEdit, UdfError>,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["runs"])?;
    let mut runs = tx.collection("runs")?;
    let Some(run) = runs.get(id) else { return Ok(Reply::not_found()) };
    let run = runs.update(&run, change(&run)?)?;
    tx.commit()?;
    Ok(Reply::record(run))
}

/// Ends every run of status `from` with status `to`, all at one instant, and answers with the ids of those
/// that have one (the app-store contract §11, S21).
///
/// # Errors
/// The store refuses.
pub fn sweep(ctx: &Context, from: &str, to: &str, error_message: &str) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["runs"])?;
    let mut runs = tx.collection("runs")?;
    let swept = runs.matching("status", from);
    for run in &swept {
        let edit = run
            .edit()
            .set("status", to)
            .set("finishedAt", ctx.now())
            .set("errorMessage", text::non_empty(error_message));
        runs.update(run, edit)?;
    }
    tx.commit()?;
    let ids: Vec<_> = swept.iter().filter_map(|run| run.get("id")).collect();
    Ok(Reply::json(Object::new().set("runIds", ids)))
}

/// The runs whose `taskId` is one of these values, and those stored with exactly this non-empty project, in file
/// order. A missing `taskId` is none of them.
pub fn of_tasks_or_project(
    runs: &CollectionMut<'_, '_>,
    task_ids: &[JsonText],
    project: &str,
) -> Vec<Record> {
    let wanted: HashSet<String> = task_ids.iter().map(|id| text::canonical(id.json())).collect();
    let mut found = runs.objects();
    found.retain(|run| {
        run.get("taskId").is_some_and(|id| wanted.contains(&text::canonical(id)))
            || (!project.is_empty() && run.is("project", project))
    });
    found
}
