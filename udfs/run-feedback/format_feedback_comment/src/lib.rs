//! `format_feedback_comment`: the issue comment of a request. Contract and examples: `spec.md`.

use run_feedback_common::{CommentParams, JsonParam, Operation, Stop, answer};
use sdk::prelude::*;

/// Prints the issue comment of a request, byte for byte; changes nothing.
#[udf]
fn format_feedback_comment(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// The request; any text.
    #[arg(default)]
    request_id: &str,
    /// Type of the question; chooses the descriptions of options, is not checked.
    #[arg(default)]
    r#type: &str,
    /// Phase that asks.
    #[arg(default)]
    phase: &str,
    /// Step that asks.
    #[arg(default)]
    step: &str,
    /// The question.
    #[arg(default)]
    prompt: &str,
    /// What may be answered: a list, empty = none.
    #[arg(default)]
    options: JsonParam,
    /// `summary` and `artifact_path` are shown: an object.
    #[arg(default)]
    context: JsonParam,
    /// Shown as it is; empty = now.
    #[arg(default)]
    timestamp: &str,
) -> Result<Reply, UdfError> {
    let params = CommentParams {
        run_id,
        request_id,
        kind: r#type,
        phase,
        step,
        prompt,
        options: &options.0,
        context: &context.0,
        timestamp,
    };
    let comment = params.render(&ctx.now().to_minutes());
    answer(Operation::FormatFeedbackComment, None, comment.map(Value::String).map_err(Stop::from))
}
