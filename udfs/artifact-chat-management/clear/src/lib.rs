//! `clear`: starts a chat over. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Empties a chat and returns it: no messages, no title, a fresh session key, no transcript. An unusable or
/// unknown id is the ordinary answer `not found`; a transcript without a chat is kept.
#[udf(
    reads("artifactChats"),
    writes("artifactChats"),
    logs("artifact-chats"),
    columns(chat_common::CHAT_COLUMNS)
)]
fn clear(
    ctx: &Context,
    /// Id of the chat.
    #[arg(default)]
    chat_id: &str,
) -> Result<Reply, UdfError> {
    let Some(log) = chat_common::transcript_to_write(ctx, chat_id)? else {
        return Ok(Reply::not_found());
    };
    let tx = ctx.begin(&["artifactChats"])?;
    let mut chats = tx.collection("artifactChats")?;
    let Some(chat) = chats.get(chat_id) else { return Ok(Reply::not_found()) };
    let edit = chat
        .edit()
        .set("messageCount", 0)
        .set("lastActivityAt", ctx.now())
        .set("sessionKey", ctx.uuid())
        .set_null("title");
    let chat = chats.update(&chat, edit)?;
    tx.commit_then_remove(&[&log])?;
    Ok(Reply::record(chat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    /// What `append_message` does, from another plugin.
    fn append(ctx: &Context) -> Result<(), UdfError> {
        let tx = ctx.begin(&["artifactChats"])?;
        let mut chats = tx.collection("artifactChats")?;
        let chat = chats.get("c").expect("the chat is there");
        let log = chat_common::transcript_to_write(ctx, "c")?.expect("the id is usable");
        log.append(JsonText::of("hello"))?;
        let count = chat_common::next_count(chat.get("messageCount"));
        chats.update(&chat, chat.edit().set("messageCount", count))?;
        tx.commit()
    }

    #[test]
    fn no_message_is_lost_between_record_and_transcript() {
        let host = TestHost::new();
        host.seed("artifactChats", r#"[{"id": "c"}]"#);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..40).for_each(|_| append(&host.context(UDF)).unwrap()));
            }
            scope.spawn(|| {
                for _ in 0..40 {
                    host.call(UDF, &[("chat_id", "c")]).unwrap();
                }
            });
        });
        let lines = host.file("artifact-chats/c.ndjson").unwrap_or_default().lines().count();
        assert_eq!(host.stored("artifactChats")[0]["messageCount"], lines);
    }

    #[test]
    fn a_cleared_chat_starts_over() {
        let host = TestHost::new();
        host.seed(
            "artifactChats",
            r#"[{"id": "c", "title": "t", "messageCount": 2, "sessionKey": "old"}]"#,
        );
        host.seed_file("artifact-chats/c.ndjson", "1\n2\n");
        let chat = host.call_json(UDF, &[("chat_id", "c")]);
        let key = chat["sessionKey"].as_str().unwrap();
        assert!(key.len() == 32 && key.as_bytes()[12] == b'4', "{key}");
        assert_eq!((&chat["messageCount"], &chat["title"]), (&json!(0), &json!(null)));
        assert_eq!(host.file("artifact-chats/c.ndjson"), None);
    }

    #[test]
    fn unusable_and_unknown_ids_touch_nothing() {
        let host = TestHost::new();
        host.seed("artifactChats", r#"[{"id": "../c"}, {"id": ""}]"#);
        host.seed_file("c.ndjson", "1\n");
        host.seed_file("artifact-chats/d.ndjson", "1\n");
        for id in ["", "../c", "a\0b", "d"] {
            assert_eq!(host.call(UDF, &[("chat_id", id)]), Ok(Reply::not_found()), "{id:?}");
        }
        assert_eq!(host.file("c.ndjson").as_deref(), Some("1\n"));
        assert_eq!(host.file("artifact-chats/d.ndjson").as_deref(), Some("1\n"));
    }
}
