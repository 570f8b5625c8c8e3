//! `emit_event`: one numbered event of a run. Contract and examples: `spec.md`.

use run_feedback_common::{EventParams, JsonParam, Operation, RunDir, Stop, answer};
use sdk::prelude::*;

/// Writes an event under the next free number and notes it in the state.
#[udf(folders)]
fn emit_event(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// What happened; one of the accepted types.
    #[arg(default)]
    r#type: &str,
    /// Phase it happened in; empty = left out.
    #[arg(default)]
    phase: &str,
    /// Step it happened in; empty = left out.
    #[arg(default)]
    step: &str,
    /// Any word; empty = left out.
    #[arg(default)]
    status: &str,
    /// For people; empty = left out.
    #[arg(default)]
    message: &str,
    /// An object; empty = left out.
    #[arg(default)]
    metadata: JsonParam,
    /// A list; empty = left out.
    #[arg(default)]
    artifacts: JsonParam,
    /// A whole number of milliseconds; absent = left out.
    #[arg(default)]
    duration_ms: &str,
    /// An object; absent = left out.
    #[arg(default)]
    error: JsonParam,
    /// What wrote the event.
    #[arg(default = "emit-event.sh")]
    source: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let params = EventParams {
        run_id,
        kind: r#type,
        phase,
        step,
        status,
        message,
        metadata: &metadata.0,
        artifacts: &artifacts.0,
        duration_ms,
        error: &error.0,
        source,
    };
    answer(Operation::EmitEvent, None, emit(ctx, &params, base_path))
}

fn emit(ctx: &Context, params: &EventParams<'_>, base_path: &str) -> Result<Value, Stop> {
    let (run_id, event) = params.check()?;
    let dir = RunDir::open(ctx, base_path, &run_id)?;
    dir.check_exists()?;
    let mut guard = dir.lock()?;
    // Before the event: a state that is no state must not leave an event behind that it will never know of.
    let mut state = guard.state_if_any()?;
    let now = ctx.now();
    let (event_id, file) = guard.write_event(&event, state.as_ref(), &now)?;
    if let Some(state) = &mut state {
        state.note_event(event_id, now.to_string());
        guard.write_state(state)?;
    }
    Ok(json!({
        "status": "success",
        "operation": "emit-event",
        "event_id": event_id,
        "type": event.kind,
        "run_id": run_id.to_string(),
        "timestamp": now.to_string(),
        "event_path": dir.paths().file(&format!("events/{file}")),
    }))
}
