//! `delete_project`: drops runs and their transcripts. Contract and examples: `spec.md`.

use run_common::{params, run};
use sdk::prelude::*;

/// Removes the runs of these tasks, and those stored with this project, together with their transcripts. A
/// blank project without task ids removes nothing and takes no lock.
#[udf(reads("runs"), writes("runs"), logs("runs"))]
fn delete_project(
    ctx: &Context,
    /// Exact name of the project, spaces included.
    #[arg(default)]
    project: &str,
    /// JSON array of task ids; empty = none.
    #[arg(default)]
    task_ids: &str,
) -> Result<Reply, UdfError> {
    let task_ids = params::array("task_ids", task_ids)?;
    let (mut removed, mut transcripts) = (0_usize, 0_usize);
    if !(text::is_blank(project) && task_ids.is_empty()) {
        let tx = ctx.begin(&["runs"])?;
        let mut runs = tx.collection("runs")?;
        runs.make_list();
        for run in run::of_tasks_or_project(&runs, &task_ids, project) {
            // Transcripts go first: were the list saved first, a crash would leave them without an owner.
            if let Some(id) = run.str("id")
                && let Some(log) = ctx.log(run_common::TRANSCRIPTS, &id)?
            {
                transcripts += usize::from(log.remove()?);
            }
            runs.remove(&run)?;
            removed += 1;
        }
        tx.commit()?;
    }
    Ok(Reply::json(
        Object::new().set("runsRemoved", removed).set("transcriptsRemoved", transcripts),
    ))
}
