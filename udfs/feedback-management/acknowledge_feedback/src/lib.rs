//! `acknowledge_feedback`: the human has seen it. Contract and examples: `spec.md`.

use feedback_common::Dismissed;
use sdk::prelude::*;

/// Remembers a feedback key as dismissed, so that its row leaves the inbox. Repeating it changes nothing.
#[udf(reads("dismissedFeedbackKeys"), writes("dismissedFeedbackKeys"))]
fn acknowledge_feedback(
    ctx: &Context,
    /// Key of the row: a comment id or a `derived:…` id of the inbox.
    #[arg(default)]
    key: &str,
) -> Result<Reply, UdfError> {
    let reply = |ok: bool, already: bool| {
        Reply::json(Object::new().set("ok", ok).set("alreadyAcked", already))
    };
    if key.is_empty() {
        return Ok(reply(false, false));
    }
    let tx = ctx.begin(&["dismissedFeedbackKeys"])?;
    let mut keys = tx.collection("dismissedFeedbackKeys")?;
    if Dismissed::of(&keys.records()).contains(key) {
        return Ok(reply(true, true));
    }
    if *keys.state() == CollectionState::Odd {
        keys.clear(); // What is no list gives way to one: a dismissal must not fail for ever.
    }
    keys.push(JsonText::of(key))?;
    tx.commit()?;
    Ok(reply(true, false))
}
