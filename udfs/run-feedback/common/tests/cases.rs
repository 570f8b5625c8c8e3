//! The golden cases that need no files, run straight on the pure functions.

use std::path::Path;

use run_feedback_common::{CommentParams, Operation, Refusal, parse_reply};
use serde_json::Value;

/// Parameters as they arrive: texts as they are, other JSON as its text.
fn param(step: &Value, name: &str) -> String {
    match &step["overrides"][name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn run(step: &Value) -> Result<Value, Refusal> {
    let get = |name: &str| param(step, name);
    match step["udf"].as_str().and_then(Operation::from_name) {
        Some(Operation::FormatFeedbackComment) => CommentParams {
            run_id: &get("run_id"),
            request_id: &get("request_id"),
            kind: &get("type"),
            phase: &get("phase"),
            step: &get("step"),
            prompt: &get("prompt"),
            options: &get("options"),
            context: &get("context"),
            timestamp: &get("timestamp"),
        }
        .render("<minute-utc>")
        .map(Value::String),
        Some(Operation::ParseIssueReply) => {
            parse_reply(&get("body"), &get("type"), &get("options"), &get("previous_body"))
                .map(|reply| reply.to_json())
        }
        other => panic!("no pure operation: {other:?}"),
    }
}

#[test]
fn comments_and_replies() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/cases/run-feedback");
    let mut seen = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("fmt-") && !name.starts_with("reply-") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for step in case["steps"].as_array().unwrap() {
            match run(step) {
                Ok(got) => assert_eq!(got, step["expect"], "{name}"),
                Err(refusal) => {
                    assert_eq!(
                        refusal.code.word(),
                        step["expect_error"]["code"].as_str().unwrap(),
                        "{name}"
                    );
                }
            }
        }
        seen += 1;
    }
    assert!(seen >= 62, "only {seen} cases in {}", dir.display());
}
