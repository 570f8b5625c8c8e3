//! `delete_project`: drops a project's tasks. Contract and examples: `spec.md`.

use std::collections::HashSet;

use sdk::prelude::*;
use task_common::{blockers, cascade};

/// Removes the tasks of a project and their comments; other tasks are no longer blocked by them. Children in
/// other projects stay. A blank name removes nothing and takes no lock.
#[udf(reads("tasks", "comments"), writes("tasks", "comments"))]
fn delete_project(
    ctx: &Context,
    /// Exact name of the project, spaces included.
    #[arg(default)]
    project: &str,
) -> Result<Reply, UdfError> {
    let mut ids = HashSet::new();
    let (mut tasks_removed, mut comments_removed) = (0, 0);
    if !text::is_blank(project) {
        let tx = ctx.begin(&["comments", "tasks"])?;
        let mut tasks = tx.collection("tasks")?;
        let doomed = tasks.matching("project", project);
        ids.extend(doomed.iter().filter_map(|task| task.str("id")).map(|id| id.into_owned()));
        ids.remove("");
        tasks.make_list();
        tasks_removed = tasks.remove_matching("project", project);
        comments_removed = cascade::remove_all(&mut tx.collection("comments")?, "taskId", &ids);
        blockers::scrub(&mut tasks, &ids)?;
        tx.commit()?;
    }
    Ok(Reply::json(
        Object::new()
            .set("deletedTaskIds", cascade::sorted(&ids))
            .set("tasksRemoved", tasks_removed)
            .set("commentsRemoved", comments_removed),
    ))
}
