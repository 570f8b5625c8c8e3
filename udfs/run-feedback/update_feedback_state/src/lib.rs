//! `update_feedback_state`: the waiting part of a state, step by step. Contract and examples: `spec.md`.

use run_feedback_common::{JsonParam, Operation, RunDir, Stop, UpdateParams, answer};
use sdk::prelude::*;

/// Opens or closes a request, appends an answer, or notes that a request reached somebody.
#[udf(folders)]
fn update_feedback_state(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// `set-awaiting`, `clear-awaiting`, `add-history` or `mark-notified`.
    #[arg(default)]
    operation: &str,
    /// The request.
    #[arg(default)]
    request_id: &str,
    /// Type of the question; any word.
    #[arg(default)]
    r#type: &str,
    /// The question.
    #[arg(default)]
    prompt: &str,
    /// What may be answered: a list.
    #[arg(default)]
    options: JsonParam,
    /// What the person should know: an object.
    #[arg(default)]
    context: JsonParam,
    /// Phase the run goes on in.
    #[arg(default)]
    phase: &str,
    /// Step the run goes on at.
    #[arg(default)]
    step: &str,
    /// Place of the step, a decimal integer; absent = null.
    #[arg(default)]
    step_index: &str,
    /// Address of the issue comment.
    #[arg(default)]
    comment_url: &str,
    /// `set-awaiting`: whether the question has been shown on a terminal.
    #[arg(default = true)]
    cli_notified: bool,
    /// `add-history`: the answer.
    #[arg(default)]
    response: &str,
    /// `add-history`: who answered; the environment is not asked.
    #[arg(default = "unknown")]
    user: &str,
    /// `add-history`: through what.
    #[arg(default = "cli")]
    source: &str,
    /// `mark-notified`: the question has been shown on a terminal.
    #[arg(default = false)]
    cli: bool,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let params = UpdateParams {
        run_id,
        operation,
        request_id,
        kind: r#type,
        prompt,
        options: &options.0,
        context: &context.0,
        phase,
        step,
        step_index,
        comment_url,
        cli_notified,
        response,
        user,
        source,
        cli,
    };
    answer(Operation::UpdateFeedbackState, params.word(), update(ctx, &params, base_path))
}

fn update(ctx: &Context, params: &UpdateParams<'_>, base_path: &str) -> Result<Value, Stop> {
    let dir = RunDir::open(ctx, base_path, &params.run_id()?)?;
    dir.check_state_exists()?;
    let update = params.check()?;
    let mut guard = dir.lock()?;
    let mut state = guard.state()?;
    let reply = update.apply(&mut state, &ctx.now())?;
    guard.write_state(&state)?;
    Ok(reply)
}
