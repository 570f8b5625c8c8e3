//! `resume_run`: where a run goes on. Contract and examples: `spec.md`.

use run_feedback_common::{Code, Operation, Refusal, RunDir, RunId, Stop, answer, resume_context};
use sdk::prelude::*;

/// Says where a run goes on; changes nothing.
#[udf(folders(read))]
fn resume_run(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// `phase:step` to go on at; empty = where it stopped. A waiting run goes on at its resume point.
    #[arg(default)]
    step: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    answer(Operation::ResumeRun, None, resume(ctx, run_id, step, base_path))
}

fn resume(ctx: &Context, run_id: &str, step: &str, base_path: &str) -> Result<Value, Stop> {
    if run_id.is_empty() {
        return Err(Refusal::new(Code::MissingRunId, "run_id is missing").into());
    }
    let run_id = RunId::parse(run_id).ok_or_else(|| Refusal::invalid_run_id(run_id))?;
    let dir = RunDir::open(ctx, base_path, &run_id)?;
    dir.check_exists()?;
    let state = dir.state(Code::StateNotFound)?;
    let context = resume_context(&state, step, dir.events(Code::StateCorrupted)?.len())?;
    Ok(json!({
        "status": "success",
        "operation": "resume-run",
        "run_id": run_id.to_string(),
        "work_id": state.value("work_id"),
        "run_status": state.value("status"),
        "resume_context": context,
        "metadata": dir.metadata()?.into_json(),
    }))
}
