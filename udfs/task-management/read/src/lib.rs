//! `read`: tasks with their runs. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::runs;

/// Lists tasks, newest first, each with its runs (`runs`), whether one of them is running (`isLive`) and
/// how many are (`liveRunCount`).
#[udf(reads("tasks", "runs"), columns(task_common::TASK_COLUMNS))]
fn read(
    ctx: &Context,
    /// Only tasks of exactly this project; empty = all.
    #[arg(default)]
    project: &str,
    /// Ignored; callers change it to get past a cache.
    #[arg(default)]
    _rev: &str,
    /// At most this many tasks; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// Continue after this task: the `cursor` of the last one seen (ask for it in `fields`), or its id.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted; `*` = all, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let tasks = ctx.read("tasks")?;
    let found =
        if project.is_empty() { tasks.records() } else { tasks.matching("project", project) };
    let runs = ctx.read("runs")?;
    let page = Page { limit, after, fields: &fields }.newest_first(found)?;
    page.map(|task| runs::with_runs(task, &runs))?.reply()
}
