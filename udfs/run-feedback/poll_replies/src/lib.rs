//! `poll_replies`: new comments on all issues with open requests. Contract and examples: `spec.md`.

use run_feedback_common::{Operation, answer, poll};
use sdk::prelude::*;

/// Reads the comments of every issue with an open request since it was asked, and acts on those that are new.
#[udf(folders, net)]
fn poll_replies(
    ctx: &Context,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    answer(Operation::PollReplies, None, poll(ctx, base_path))
}

#[cfg(test)]
mod tests;
