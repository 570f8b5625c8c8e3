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
    let reply =
        |already: bool| Reply::json(Object::new().set("ok", true).set("alreadyAcked", already));
    if key.is_empty() {
        return Ok(reply(false));
    }
    let tx = ctx.begin(&["dismissedFeedbackKeys"])?;
    let mut keys = tx.collection("dismissedFeedbackKeys")?;
    if Dismissed::of(&keys.records()).contains(key) {
        return Ok(reply(true));
    }
    if *keys.state() == CollectionState::Odd {
        keys.clear(); // What is no list gives way to one: a dismissal must not fail for ever.
    }
    keys.push(JsonText::of(key))?;
    tx.commit()?;
    Ok(reply(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    #[test]
    fn whatever_is_stored_gives_way_to_a_list() {
        for stored in ["null", "{}", "false", "0", "\"\"", "7", "{\"k\": 1}", "true", "\"k\""] {
            let host = TestHost::new();
            host.seed("dismissedFeedbackKeys", stored);
            assert_eq!(
                host.call_json(UDF, &[("key", "k")]),
                json!({"ok": true, "alreadyAcked": false})
            );
            assert_eq!(host.stored("dismissedFeedbackKeys"), json!(["k"]), "{stored}");
        }
    }

    #[test]
    fn odd_members_and_duplicates_stay() {
        let host = TestHost::new();
        host.seed("dismissedFeedbackKeys", r#"["a", 7, "a", null]"#);
        assert_eq!(
            host.call_json(UDF, &[("key", "7")]),
            json!({"ok": true, "alreadyAcked": false})
        );
        assert_eq!(host.stored("dismissedFeedbackKeys"), json!(["a", 7, "a", null, "7"]));
    }

    #[test]
    fn the_empty_key_takes_no_lock() {
        let host = TestHost::new();
        host.seed("dismissedFeedbackKeys", "torn");
        assert_eq!(host.call_json(UDF, &[]), json!({"ok": true, "alreadyAcked": false}));
        assert_eq!(host.file("state/.dismissedFeedbackKeys.lock"), None);
    }
}
