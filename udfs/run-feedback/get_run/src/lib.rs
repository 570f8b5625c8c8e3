//! `get_run`: one run. Contract and examples: `spec.md`.

use run_feedback_common::{Code, Operation, Refusal, RunDir, RunId, Stop, answer};
use sdk::prelude::*;

/// Returns metadata and state of a run as they are stored.
#[udf(folders(read))]
fn get_run(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// Whether to count its events.
    #[arg(default = false)]
    include_events: bool,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    answer(Operation::GetRun, None, get(ctx, run_id, include_events, base_path))
}

fn get(ctx: &Context, run_id: &str, include_events: bool, base_path: &str) -> Result<Value, Stop> {
    if run_id.is_empty() {
        return Err(Refusal::new(Code::MissingRunId, "run_id is missing").into());
    }
    let run_id = RunId::parse(run_id).ok_or_else(|| Refusal::invalid_run_id(run_id))?;
    let dir = RunDir::open(ctx, base_path, &run_id)?;
    dir.check_exists()?;
    let mut reply = json!({
        "status": "success",
        "operation": "get-run",
        "run_id": run_id.to_string(),
        "metadata": dir.metadata()?.into_json(),
        "state": dir.state(Code::RunNotFound)?.into_json(),
    });
    if include_events {
        reply["event_count"] = dir.events(Code::StateCorrupted)?.len().into();
    }
    Ok(reply)
}
