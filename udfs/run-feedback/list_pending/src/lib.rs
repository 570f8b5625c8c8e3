//! `list_pending`: open requests, oldest first. Contract and examples: `spec.md`.

use run_feedback_common::{
    Filter, Operation, PENDING_COLUMNS, PendingRow, Runs, Stop, answer, pending_order,
};
use sdk::prelude::*;

/// Lists the open requests of all runs, oldest first, and names the runs whose state cannot be read.
#[udf(folders(read), columns(PENDING_COLUMNS), rows("pending"))]
fn list_pending(
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
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let filter = Filter { org, project, work_id, status: "" };
    answer(Operation::ListPending, None, list(ctx, &filter, base_path))
}

fn list(ctx: &Context, filter: &Filter<'_>, base_path: &str) -> Result<Value, Stop> {
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    Runs::open(ctx, base_path)?.each_waiting(filter, |run_id, state| match state {
        Ok(state) if filter.wants(&state) => rows.extend(PendingRow::of(&run_id, &state)),
        Ok(_) => {}
        Err(_) => unreadable.push(run_id),
    })?;
    rows.sort_by(pending_order);
    unreadable.sort();
    let total = rows.len();
    let pending: Vec<Value> = rows.into_iter().map(PendingRow::into_json).collect();
    let unreadable: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    Ok(json!({
        "status": "success",
        "operation": "list-pending",
        "pending": pending,
        "total": total,
        "unreadable": unreadable,
    }))
}
