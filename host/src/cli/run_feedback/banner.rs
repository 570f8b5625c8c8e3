//! The lines around an answer, for people (the run-feedback contract §16).

use serde_json::Value;

use super::project::{Params, value};

/// 39 × `─`.
const RULE: &str = "───────────────────────────────────────";

/// Before `request_feedback`.
pub(super) fn request_start(params: &Params) -> String {
    let shown = |name: &str| clean(value(params, name));
    block(&[
        "🎯 STARTING: Feedback Handler (request-feedback)",
        &format!("Run ID: {}", shown("run_id")),
        &format!("Type: {}", shown("feedback_type")),
        &format!("Phase: {}", shown("phase")),
        &format!("Step: {}", shown("step")),
        RULE,
    ])
}

/// After a successful `request_feedback`.
pub(super) fn request_end(reply: &Value) -> String {
    let sent = &reply["notifications"];
    let mark = |name: &str| if sent[name] == true { "✓" } else { "✗" };
    let mut lines = vec![
        "✅ COMPLETED: Feedback Handler (request-feedback)".to_owned(),
        format!("Request ID: {}", one_line(&reply["details"]["request_id"])),
        format!("Notifications: CLI {}, Issue Comment {}", mark("cli"), mark("issue_comment")),
    ];
    if sent["comment_url"].is_string() {
        lines.push(format!("Comment URL: {}", one_line(&sent["comment_url"])));
    }
    lines.push(RULE.to_owned());
    lines.push("Status: awaiting_feedback".to_owned());
    lines.push("Next: User must provide feedback to continue".to_owned());
    block(&lines)
}

/// Before `process_response`.
pub(super) fn response_start(params: &Params) -> String {
    block(&[
        "🎯 STARTING: Feedback Handler (process-response)",
        &format!("Request ID: {}", clean(value(params, "request_id"))),
        &format!("Response: {}", clean(value(params, "response"))),
        RULE,
    ])
}

/// After a successful `process_response`.
pub(super) fn response_end(reply: &Value) -> String {
    let (action, point) = (one_line(&reply["result"]["action"]), &reply["result"]["resume_point"]);
    let (phase, step) = (one_line(&point["phase"]), one_line(&point["step"]));
    let next = match action.as_str() {
        "abort" => "Next: Workflow will be cancelled".to_owned(),
        _ => format!("Next: Workflow will resume from {step}"),
    };
    block(&[
        "✅ COMPLETED: Feedback Handler (process-response)",
        &format!("Action: {action}"),
        &format!("Resume Point: {phase}:{step}"),
        RULE,
        &next,
    ])
}

fn block(lines: &[impl AsRef<str>]) -> String {
    lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect()
}

/// A value in one line, safe for a terminal.
pub(super) fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        other => other.to_string(),
    }
}

fn clean(text: &str) -> String {
    printable(&text.replace("\r\n", " ").replace('\n', " "))
}

/// Without control characters, and without those that reorder what stands beside them: no text of others may move the
/// cursor, recolour the screen, or look like our own words.
pub(super) fn printable(text: &str) -> String {
    let reorders = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|&c| c == '\t' || !(c.is_control() || reorders(c))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(list: &[(&str, &str)]) -> Params {
        list.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn banners_of_a_request() {
        assert_eq!(
            request_start(&params(&[
                ("run_id", "a/b/c"),
                ("feedback_type", "approval"),
                ("phase", "build"),
                ("step", "x\u{1b}[2J")
            ])),
            "🎯 STARTING: Feedback Handler (request-feedback)\nRun ID: a/b/c\nType: approval\nPhase: build\nStep: x[2J\n───────────────────────────────────────\n"
        );
        let mut reply = json!({
            "details": {"request_id": "fr-1"},
            "notifications": {"cli": true, "issue_comment": false, "comment_url": null},
        });
        assert_eq!(
            request_end(&reply),
            "✅ COMPLETED: Feedback Handler (request-feedback)\nRequest ID: fr-1\nNotifications: CLI ✓, Issue Comment ✗\n───────────────────────────────────────\nStatus: awaiting_feedback\nNext: User must provide feedback to continue\n"
        );
        reply["notifications"] = json!({"cli": false, "issue_comment": true, "comment_url": "u"});
        let text = request_end(&reply);
        assert!(
            text.contains("Notifications: CLI ✗, Issue Comment ✓\nComment URL: u\n─"),
            "{text}"
        );
        assert_eq!(RULE.chars().count(), 39);
    }

    #[test]
    fn banners_of_a_response() {
        assert_eq!(
            response_start(&params(&[("request_id", "fr-1"), ("response", "two\nlines")])),
            "🎯 STARTING: Feedback Handler (process-response)\nRequest ID: fr-1\nResponse: two lines\n───────────────────────────────────────\n"
        );
        let reply = |action: &str| json!({"result": {"action": action, "resume_point": {"phase": "build", "step": "x", "step_index": null}}});
        assert_eq!(
            response_end(&reply("continue")),
            "✅ COMPLETED: Feedback Handler (process-response)\nAction: continue\nResume Point: build:x\n───────────────────────────────────────\nNext: Workflow will resume from x\n"
        );
        assert!(response_end(&reply("abort")).ends_with("Next: Workflow will be cancelled\n"));
    }
}
