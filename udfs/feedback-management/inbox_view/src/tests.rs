use super::*;
use sdk::testing::TestHost;

fn view(host: &TestHost, project: &str) -> Value {
    host.call_json(UDF, &[("project", project)])
}

fn seed(host: &TestHost, collection: &str, records: Value) {
    host.seed(collection, &records.to_string());
}

/// The ids and types of the rows, in order.
fn rows(view: &Value) -> Vec<String> {
    let items = view["items"].as_array().unwrap();
    items.iter().map(|item| format!("{} {}", item["type"].as_str().unwrap(), item["id"])).collect()
}

#[test]
fn odd_stamps_and_ids_never_blank_the_feed() {
    let host = TestHost::new();
    seed(
        &host,
        "cards",
        json!([
            7,
            {"id": 5, "status": "pending", "continuationPolicy": "wake_assignee", "createdAt": 12},
            {"status": "pending", "effect": "review_work_product", "payload": ["x"], "createdAt": null},
            {"id": "c", "status": "pending", "effect": "new kind", "continuationPolicy": "wake_assignee",
             "createdAt": "2026-01-01T00:00:00.000Z", "payload": {"effectArgs": [1], "widget": 0}},
        ]),
    );
    seed(&host, "comments", json!([{"kind": "notify", "id": null, "createdAt": false}, "x"]));
    let seen = view(&host, "");
    assert_eq!(rows(&seen), ["question \"c\"", "question 5", "message null", "message null"]);
    assert_eq!(seen["items"][1]["createdAt"], 12, "the stored value shows as it is");
    assert_eq!(seen["items"][3]["createdAt"], "");
}

#[test]
fn joins_compare_values_of_any_type() {
    let host = TestHost::new();
    seed(
        &host,
        "tasks",
        json!([
            {"id": 1, "title": "number", "project": "p", "status": "completed"},
            {"id": "1", "title": "first text", "project": "p"},
            {"id": "1", "title": "last text", "project": "p"},
            {"title": "no id", "project": "q"},
        ]),
    );
    let card = |id: &str, task: Value| json!({"id": id, "taskId": task, "status": "pending", "continuationPolicy": "wake_assignee"});
    seed(
        &host,
        "cards",
        json!([card("a", json!(1)), card("b", json!("1")), card("c", json!(null))]),
    );
    seed(&host, "runs", json!([{"id": "r", "taskId": 1, "status": "completed"}]));
    let seen = view(&host, "");
    let titles: Vec<_> =
        seen["items"].as_array().unwrap().iter().map(|i| i["taskTitle"].clone()).collect();
    assert_eq!(titles, [json!("number"), json!("last text"), json!("no id"), json!("number")]);
    assert_eq!(rows(&seen)[3], "completion \"derived:completion:r\"");
}

#[test]
fn dismissal_is_per_run() {
    let host = TestHost::new();
    seed(&host, "tasks", json!([{"id": "t", "status": "failed", "project": "p"}]));
    let run =
        |id: &str, at: &str| json!({"id": id, "taskId": "t", "status": "failed", "createdAt": at});
    seed(&host, "runs", json!([run("r1", "1"), run("r0", "0")]));
    assert_eq!(rows(&view(&host, "p")), ["failure \"derived:failure:r1\""]);
    seed(&host, "dismissedFeedbackKeys", json!(["derived:failure:r1"]));
    assert_eq!(rows(&view(&host, "p")), Vec::<String>::new());
    seed(&host, "runs", json!([run("r1", "1"), run("r2", "1")]));
    assert_eq!(rows(&view(&host, "p")), ["failure \"derived:failure:r2\""]);
    assert_eq!(rows(&view(&host, "q")), Vec::<String>::new());
}

#[test]
fn rows_have_their_keys_in_order() {
    let host = TestHost::new();
    let card = json!({"id": "c", "status": "pending", "continuationPolicy": "wake_assignee", "summary": 0});
    seed(&host, "cards", json!([card]));
    let reply = host.call(UDF, &[]).unwrap().to_json().unwrap();
    let reply = JsonText::parse(reply).unwrap();
    let items = reply.json().get("items").unwrap();
    let keys: Vec<String> =
        items.items().next().unwrap().fields().map(|(key, _)| key.into_owned()).collect();
    assert_eq!(
        keys.join(" "),
        "id project type taskId agentSlug body details diffPaths widget workProductId createdAt \
         resolvedAt response taskTitle taskNumber sourceCardId card"
    );
    assert_eq!(items.items().next().unwrap().get("body").unwrap().text(), "\"(question)\"");
}
