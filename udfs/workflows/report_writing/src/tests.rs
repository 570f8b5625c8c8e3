use sdk::testing::TestHost;

use super::*;

const TASK: &str = r#"{"id": "t1", "query": "A report on tea"}"#;
const STATE: &str = "workflows/report_writing/t1";

fn call(host: &TestHost, call: &str, more: &[(&str, &str)]) -> Value {
    let mut params = vec![("call", call), ("task", TASK)];
    params.extend(more);
    host.call_json(UDF, &params)
}

fn ended(host: &TestHost, agent: &str, result: &str) {
    let arguments = json!({"agent": agent, "status": "completed", "result": result}).to_string();
    call(host, "record_outcome", &[("state_dir", STATE), ("arguments", &arguments)]);
}

fn query(step: &Value) -> &str {
    step["step"]["actions"][0]["parameters"]["query"].as_str().unwrap()
}

#[test]
fn a_report_is_drafted_checked_put_right_and_handed_over() {
    let host = TestHost::new();
    call(&host, "add_source", &[("name", "almanac"), ("text", "Tea is grown in Assam.")]);
    let step = call(&host, "step", &[]);
    assert_eq!(step["stage"], "bootstrap");
    assert!(query(&step).contains("A report on tea") && query(&step).contains("by name: almanac."));

    assert_eq!(call(&host, "draft_problems", &[]).as_array().unwrap().len(), 1);
    call(&host, "write_draft", &[("state_dir", STATE), ("text", "# Tea\nIt is grown in Kent.")]);
    assert_eq!(call(&host, "draft_problems", &[]), json!([]));
    ended(&host, "research_agent", "written");
    let step = call(&host, "step", &[]);
    assert_eq!(step["stage"], "check");
    assert!(query(&step).contains("VERDICT") && query(&step).contains("A report on tea"));

    ended(&host, "fact_check", "VERDICT: FAIL\n- Where it grows — FAIL — the almanac says Assam");
    let step = call(&host, "step", &[]);
    assert_eq!((&step["stage"], &step["round"]), (&json!("work_round"), &json!(2)));
    assert!(
        query(&step).contains("the almanac says Assam") && query(&step).contains("ALREADY TRIED")
    );

    call(&host, "write_draft", &[("state_dir", STATE), ("text", "# Tea\nIt is grown in Assam.")]);
    ended(&host, "research_agent", "put right");
    ended(&host, "fact_check", "VERDICT: PASS\n- Where it grows — PASS");
    let step = call(&host, "step", &[]);
    assert_eq!(step["step"]["purpose"], "presentation");
    assert!(step["step"]["prompt"].as_str().unwrap().contains("reports/t1/draft.md"));
    assert_eq!(call(&host, "task_end_gate", &[])["allowed"], true);
    assert_eq!(host.file("reports/t1/draft.md").unwrap(), "# Tea\nIt is grown in Assam.");

    // Whoever writes to a verified report makes it unverified.
    call(&host, "write_draft", &[("text", "# Tea")]);
    assert_eq!(call(&host, "task_end_gate", &[])["allowed"], false);
}

#[test]
fn a_task_may_name_a_report_that_stands() {
    let host = TestHost::new();
    let named = r#"{"id": "t2", "query": "shorter", "subject": "tea 2026"}"#;
    call(
        &host,
        "write_draft",
        &[("state_dir", "workflows/report_writing/tea 2026"), ("text", "x")],
    );
    assert_eq!(
        host.call_json(UDF, &[("call", "subject"), ("task", named)]),
        json!({"id": "tea 2026", "state_dir": "workflows/report_writing/tea 2026"})
    );
    assert_eq!(host.call_json(UDF, &[("call", "read_draft"), ("task", named)]), "x");
    for subject in ["../x", "a/b", ".hidden"] {
        let task = json!({"id": "t", "subject": subject}).to_string();
        for asked in ["subject", "read_draft"] {
            assert!(host.call(UDF, &[("call", asked), ("task", &task)]).is_err(), "{subject}");
        }
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let host = TestHost::new();
    for params in [
        &[("call", "write_draft"), ("text", " ")][..],
        &[("call", "add_source"), ("name", "../x"), ("text", "x")],
        &[("call", "add_source"), ("name", "x")],
        &[("call", "read_source"), ("name", "")],
    ] {
        let mut params = params.to_vec();
        params.push(("task", TASK));
        assert!(host.call(UDF, &params).is_err(), "{params:?}");
    }
    assert!(host.call(UDF, &[("call", "read_draft")]).is_err(), "no report is named");
    assert_eq!(call(&host, "read_draft", &[]), json!({"ok": false, "error": "not found"}));
    assert_eq!(call(&host, "list_sources", &[]), json!([]));
}
