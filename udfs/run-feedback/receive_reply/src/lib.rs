//! `receive_reply`: one comment of an issue, as a webhook delivers it. Contract and examples: `spec.md`.

use run_feedback_common::{Delivery, IssueComment, Operation, answer, receive};
use sdk::prelude::*;

/// Acts on one comment of an issue: records the answer in it, or replies with what may be answered.
#[udf(folders, net)]
fn receive_reply(
    ctx: &Context,
    /// The issue, a number.
    #[arg(default)]
    issue: &str,
    /// Id of the comment; what was done about it is remembered under this.
    #[arg(default)]
    comment_id: &str,
    /// Login of the author.
    #[arg(default)]
    author: &str,
    /// What the author is to the repository, as `MEMBER`; empty = not known.
    #[arg(default)]
    association: &str,
    /// The comment, as it was written.
    #[arg(default)]
    body: &str,
    /// When it was written, `2026-01-31T08:05:09Z`.
    #[arg(default)]
    created_at: &str,
    /// Id of the webhook's delivery; empty = none.
    #[arg(default)]
    delivery: &str,
    /// The repository it came from, `owner/name`; empty = not known. Any other than the one that is set up is passed over.
    #[arg(default)]
    repository: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let comment = IssueComment {
        id: comment_id.to_owned(),
        author: author.to_owned(),
        association: association.to_owned(),
        body: body.to_owned(),
        created_at: created_at.to_owned(),
    };
    let delivery = Delivery {
        id: delivery.to_owned(),
        issue: issue.to_owned(),
        repository: repository.to_owned(),
        comment,
    };
    answer(Operation::ReceiveReply, None, receive(ctx, base_path, &delivery))
}

#[cfg(test)]
mod tests;
