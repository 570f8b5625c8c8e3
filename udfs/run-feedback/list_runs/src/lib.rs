//! `list_runs`: runs, newest first. Contract and examples: `spec.md`.

use run_feedback_common::{Filter, Operation, RUN_COLUMNS, RunRow, Runs, Stop, answer, run_order};
use sdk::prelude::*;

/// Lists runs, newest first; runs whose state cannot be read are left out.
#[udf(folders(read), columns(RUN_COLUMNS), rows("runs"))]
fn list_runs(
    ctx: &Context,
    /// Only runs of this organisation; empty = all.
    #[arg(default)]
    org: &str,
    /// Only runs of this project; empty = all.
    #[arg(default)]
    project: &str,
    /// Only runs of this issue; empty = all.
    #[arg(default)]
    work_id: &str,
    /// Only runs in this status; empty = all.
    #[arg(default)]
    status: &str,
    /// At most this many runs.
    #[arg(default = 20)]
    limit: u32,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let filter = Filter { org, project, work_id, status };
    answer(Operation::ListRuns, None, list(ctx, &filter, limit, base_path))
}

fn list(ctx: &Context, filter: &Filter<'_>, limit: u32, base_path: &str) -> Result<Value, Stop> {
    let mut rows = Vec::new();
    Runs::open(ctx, base_path)?.each(filter, |run_id, state| {
        if let Ok(state) = state
            && filter.wants(&state)
        {
            rows.push(RunRow::of(&run_id, &state));
        }
    })?;
    rows.sort_by(run_order);
    let total = rows.len();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let runs: Vec<Value> = rows.into_iter().take(limit).map(RunRow::into_json).collect();
    Ok(json!({ "status": "success", "operation": "list-runs", "runs": runs, "total": total }))
}
