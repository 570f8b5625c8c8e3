//! `get_user_identity`: who is answering. Contract and examples: `spec.md`.

use run_feedback_common::{IdentitySource, Operation, Stop, Surroundings, answer, identify};
use sdk::prelude::*;

/// Says who is answering: the person at this machine, or the author of an issue comment.
#[udf]
fn get_user_identity(
    ctx: &Context,
    /// `cli` or `issue`.
    #[arg(default = "cli")]
    source: &str,
    /// Who wrote the comment; needed for `issue`.
    #[arg(default)]
    issue_author: &str,
) -> Result<Reply, UdfError> {
    let identity = IdentitySource::parse(source)
        .and_then(|source| identify(source, issue_author, Surroundings::of_process))
        .map(|identity| identity.to_json(&ctx.now()));
    answer(Operation::GetUserIdentity, None, identity.map_err(Stop::from))
}
