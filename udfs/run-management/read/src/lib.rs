//! `read`: runs of some tasks or of all. Contract and examples: `spec.md`.

use run_common::params;
use sdk::prelude::*;

/// Lists runs, oldest first, exactly as stored.
#[udf(reads("runs"), columns(run_common::RUN_COLUMNS))]
fn read(
    ctx: &Context,
    /// Only runs of these tasks: a JSON array of ids, or ids with commas between; blank = all. A malformed array
    /// names no task.
    #[arg(default)]
    task_ids: &str,
    /// At most this many runs; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// Continue after this run: the `cursor` of the last one seen (ask for it in `fields`), or its id.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted; `*` = all stored ones, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let runs = ctx.read("runs")?;
    let found = match params::task_filter(task_ids) {
        None => runs.records(),
        Some(ids) => runs.matching_any("taskId", &ids),
    };
    Page { limit, after, fields: &fields }.oldest_first(found)?.reply()
}
