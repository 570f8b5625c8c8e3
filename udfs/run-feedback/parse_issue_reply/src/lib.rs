//! `parse_issue_reply`: what somebody answered on an issue. Contract and examples: `spec.md`.

use run_feedback_common::{JsonParam, Operation, Stop, answer, parse_reply};
use sdk::prelude::*;

/// Reads the text of an issue reply: the command in it, and which option it means; changes nothing.
#[udf]
fn parse_issue_reply(
    _ctx: &Context,
    /// Text of the comment.
    #[arg(default)]
    body: &str,
    /// Type of the open question.
    #[arg(default)]
    r#type: &str,
    /// Options of the open question: a list; absent = those of the type.
    #[arg(default)]
    options: JsonParam,
    /// The same author's comment before it, used if this one is nothing but the command.
    #[arg(default)]
    previous_body: &str,
) -> Result<Reply, UdfError> {
    let reply = parse_reply(body, r#type, &options.0, previous_body).map(|reply| reply.to_json());
    answer(Operation::ParseIssueReply, None, reply.map_err(Stop::from))
}
