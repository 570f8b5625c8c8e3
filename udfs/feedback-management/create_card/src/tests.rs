use super::*;
use sdk::testing::TestHost;

fn statuses(host: &TestHost) -> Vec<Value> {
    host.stored("cards").as_array().unwrap().iter().map(|card| card["status"].clone()).collect()
}

#[test]
fn bad_input_is_refused_before_any_lock() {
    for (params, want) in [
        (vec![], "create_card requires a non-empty JSON `payload`"),
        (
            vec![("payload", "{"), ("continuation_policy", "x"), ("reissue", "x")],
            "create_card `payload` is not valid JSON: ",
        ),
        (vec![("payload", "[NaN]")], "create_card `payload` is not valid JSON: "),
        (vec![("payload", "1e999")], "create_card `payload` is not valid JSON: "),
        (
            vec![("payload", "1"), ("continuation_policy", "wake")],
            "create_card `continuation_policy` must be",
        ),
        (
            vec![("payload", "1"), ("reissue", "alive")],
            "create_card `reissue` must be empty or `dead`",
        ),
    ] {
        let host = TestHost::new();
        host.seed("cards", "torn");
        let error = host.call(UDF, &params).unwrap_err();
        assert!(error.message().starts_with(want), "{params:?}: {error}");
        assert_eq!(host.file("state/.cards.lock"), None, "{params:?} took the lock");
    }
}

#[test]
fn corrupt_cards_are_refused_and_kept() {
    let host = TestHost::new();
    host.seed("cards", "[{},");
    let error = host.call(UDF, &[("payload", "1")]).unwrap_err();
    assert!(
        error.message().contains("state/cards.json is corrupt and could not be parsed ("),
        "{error}"
    );
    assert_eq!(host.file("state/cards.json").as_deref(), Some("[{},"));
    assert_eq!(host.file("state/.cards.lock").as_deref(), Some(""));
}

#[test]
fn superseding_goes_by_project_task_and_stored_policy() {
    let host = TestHost::new();
    let card = |project: &str, task: &str, status: &str, policy: Value| json!({"project": project, "taskId": task, "status": status, "continuationPolicy": policy});
    let cards = json!([
        card("p", "t", "pending", json!("wake_assignee")),
        {"project": "p", "taskId": "t", "status": "pending"},
        card("p", "t", "pending", json!("unknown")),
        card("p", "t", "pending", json!("none")),
        card("q", "t", "pending", json!("wake_assignee")),
        card("p", "u", "pending", json!("wake_assignee")),
        card("p", "t", "answered", json!("wake_assignee")),
    ]);
    host.seed("cards", &cards.to_string());
    host.call(UDF, &[("payload", "1"), ("project", "p"), ("task_id", "t")]).unwrap();
    assert_eq!(
        statuses(&host),
        [
            "superseded",
            "superseded",
            "superseded",
            "pending",
            "pending",
            "pending",
            "answered",
            "pending"
        ]
    );
    host.seed("cards", &cards.to_string());
    let none =
        [("payload", "1"), ("project", "p"), ("task_id", "t"), ("continuation_policy", "none")];
    host.call(UDF, &none).unwrap();
    assert_eq!(statuses(&host)[..3], ["pending", "pending", "pending"]);
}

#[test]
fn a_key_is_answered_by_the_first_pending_else_the_newest() {
    let host = TestHost::new();
    let card = |id: &str, status: &str| json!({"id": id, "project": "", "taskId": "", "idempotencyKey": "k", "status": status});
    let ask = |more: &[(&'static str, &'static str)]| {
        let mut params = vec![("payload", "1"), ("idempotency_key", "k")];
        params.extend(more);
        host.call_json(UDF, &params)["id"].as_str().unwrap().to_owned()
    };
    host.seed(
        "cards",
        &json!([card("a", "answered"), card("b", "pending"), card("c", "pending")]).to_string(),
    );
    assert_eq!((ask(&[]).as_str(), ask(&[("reissue", "dead")]).as_str()), ("b", "b"));
    host.seed("cards", &json!([card("a", "answered"), card("b", "cancelled")]).to_string());
    assert_eq!(ask(&[]), "b");
    let fresh = ask(&[("reissue", "dead")]);
    assert!(fresh.starts_with("card_") && fresh.len() == 17, "{fresh}");
    assert_eq!(ask(&[]), fresh);
}

#[test]
fn many_callers_with_one_key_ask_once() {
    let host = TestHost::new();
    let params = [("payload", "1"), ("idempotency_key", "k"), ("project", "p"), ("task_id", "t")];
    let ids: std::collections::HashSet<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| host.call_json(UDF, &params)["id"].to_string()))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), host.stored("cards").as_array().unwrap().len()), (1, 1));
}

#[test]
fn what_other_programs_wrote_is_carried_along() {
    let host = TestHost::new();
    host.seed("cards", r#"[7, {"x": 1.50, "id": "odd", "n": NaN, "s": "\ud800"}]"#);
    host.set_now(Timestamp::from_unix_ms(0));
    host.call(UDF, &[("payload", r#"{"big": 123456789012345678901234567890}"#)]).unwrap();
    let stored = host.file("state/cards.json").unwrap();
    let head = "[\n  7,\n  {\n    \"x\": 1.5,\n    \"id\": \"odd\",\n    \"n\": NaN,\n    \"s\": \"\\ud800\"\n  },\n";
    assert!(stored.starts_with(head), "{stored}");
    assert!(stored.contains("\"big\": 123456789012345678901234567890"), "{stored}");
    assert!(stored.contains("\"createdAt\": \"1970-01-01T00:00:00.000Z\""), "{stored}");
}
