//! `delete`: a task and all below it. Contract and examples: `spec.md`.

use sdk::prelude::*;
use task_common::{blockers, cascade};

/// Removes a task, its descendants, and the runs, comments, inbox rows, cards and cost events that
/// name one of them; other tasks are no longer blocked by them. Transcripts and dismissed keys stay.
#[udf(
    reads("tasks", "runs", "comments", "inbox", "cards", "costEvents"),
    writes("tasks", "runs", "comments", "inbox", "cards", "costEvents")
)]
fn delete(
    ctx: &Context,
    /// Id of the task.
    #[arg(default)]
    id: &str,
) -> Result<Reply, UdfError> {
    let tx = ctx.begin(&["cards", "comments", "costEvents", "inbox", "runs", "tasks"])?;
    let mut tasks = tx.collection("tasks")?;
    if id.is_empty() || tasks.get(id).is_none() {
        return Ok(Reply::not_found());
    }
    let family = cascade::family(&tasks, id);
    let mut counts = Object::new().set("deletedTaskIds", cascade::sorted(&family));
    for (collection, count) in [
        ("runs", "runsRemoved"),
        ("comments", "commentsRemoved"),
        ("inbox", "inboxRemoved"),
        ("cards", "cardsRemoved"),
        ("costEvents", "costEventsRemoved"),
    ] {
        let removed = cascade::remove_all(&mut tx.collection(collection)?, "taskId", &family);
        counts = counts.set(count, removed);
    }
    cascade::remove_all(&mut tasks, "id", &family);
    blockers::scrub(&mut tasks, &family)?;
    tx.commit()?;
    Ok(Reply::json(counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    #[test]
    fn circles_twins_and_children_without_id() {
        let host = TestHost::new();
        host.seed(
            "tasks",
            &json!([
                {"id": "a", "parentId": "c"},
                {"id": "b", "parentId": "a"},
                {"id": "c", "parentId": "b"},
                {"id": "a", "title": "twin"},
                {"parentId": "a", "title": "no id"},
                {"id": 7, "parentId": "a"},
                {"id": "z", "blockedBy": ["a", "x", 1.50, "c"], "updatedAt": "then"},
                {"id": "y", "blockedBy": "a"},
                7,
            ])
            .to_string(),
        );
        host.seed("comments", r#"[{"taskId": "b"}, {"taskId": "z"}, {}]"#);
        host.seed("inbox", "null");
        let reply = host.call(UDF, &[("id", "b")]).unwrap().to_json().unwrap();
        assert_eq!(
            reply,
            r#"{"deletedTaskIds":["a","b","c"],"runsRemoved":0,"commentsRemoved":1,"inboxRemoved":0,"cardsRemoved":0,"costEventsRemoved":0}"#
        );
        assert_eq!(
            host.stored("tasks"),
            json!([
                {"parentId": "a", "title": "no id"},
                {"id": 7, "parentId": "a"},
                {"id": "z", "blockedBy": ["x", 1.5], "updatedAt": "then"},
                {"id": "y", "blockedBy": "a"},
                7,
            ])
        );
        assert_eq!(
            (host.stored("comments"), host.stored("inbox")),
            (json!([{"taskId": "z"}, {}]), json!([]))
        );
        assert_eq!(host.file("state/runs.json"), None, "what was not there is not made");
    }

    #[test]
    fn nothing_is_found_under_no_id() {
        let host = TestHost::new();
        let tasks = r#"[{"id":""},{"title":"no id"}]"#;
        host.seed("tasks", tasks);
        for params in [&[][..], &[("id", "")], &[("id", "nope")]] {
            assert_eq!(host.call(UDF, params), Ok(Reply::not_found()), "{params:?}");
        }
        assert_eq!(host.file("state/tasks.json").as_deref(), Some(tasks));
    }
}
