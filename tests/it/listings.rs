//! What every listing takes beside its own parameters, over HTTP.

use serde_json::{Value, json};

use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess};

/// Each listing, and the parameters with which it has something to show.
fn listings() -> [(&'static str, &'static str, Value); 8] {
    [
        ("feedback-management", "list_cards", json!({})),
        ("feedback-management", "list_open_cards", json!({})),
        ("artifact-chat-management", "read", json!({})),
        ("artifact-chat-management", "transcript", json!({"chat_id": "a"})),
        ("run-management", "read", json!({})),
        ("run-management", "transcript", json!({"run_id": "a"})),
        ("task-management", "read", json!({})),
        ("task-management", "list_comments", json!({"task_id": "t"})),
    ]
}

#[test]
fn fields_are_a_comma_list_or_a_json_list_and_never_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let record = json!({"id": "a", "taskId": "t", "status": "pending", "continuationPolicy": "wake_assignee"});
    for name in ["cards", "runs", "tasks", "comments", "artifactChats"] {
        write(
            &folder.path().join(format!("state/{name}.json")),
            json!([record]).to_string().as_bytes(),
        );
    }
    for name in ["runs", "artifact-chats"] {
        write(&folder.path().join(name).join("a.ndjson"), format!("{record}\n").as_bytes());
    }
    let host = HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder.path()));
    for (project, op, params) in listings() {
        let with = |fields: Value| {
            let mut params = params.clone();
            params["fields"] = fields;
            params
        };
        let want = json!([{"id": "a", "status": "pending"}]);
        for fields in [json!("id,status"), json!(["id", "status"]), json!(" [\"status\", \"id\"]")]
        {
            let rows = host.data(project, op, &with(fields.clone()));
            assert_eq!(rows, want, "{project}.{op} {fields}");
        }
        // What no record has is passed over.
        assert_eq!(host.data(project, op, &with(json!("id,nothing"))), json!([{"id": "a"}]));
        for fields in [json!([["id"]]), json!({"id": true}), json!("[id,status]"), json!([1])] {
            let (status, envelope) = host.exec("_core", project, op, &with(fields.clone()));
            assert_eq!(status, 400, "{project}.{op} {fields}: {envelope}");
            let said = envelope["error"].as_str().unwrap();
            assert!(said.contains("`fields`") && said.contains("JSON list"), "{said}");
        }
    }
}
