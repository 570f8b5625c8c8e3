//! `generate_request_id`: a new request id. Contract and examples: `spec.md`.

use run_feedback_common::request_id;
use sdk::prelude::*;

/// Prints `fr-YYYYMMDD-xxxxxx`: today in UTC and six random hex digits.
#[udf]
fn generate_request_id(ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::text(&request_id(&ctx.now(), ctx.random())))
}
