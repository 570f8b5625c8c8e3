//! Lines for people beside the JSON (§16): banners of the whole operations, and the question on a terminal.

use serde_json::{Map, Value};

use crate::params::plain;
use crate::types::description;

/// 39 × `─`.
const RULE: &str = "───────────────────────────────────────";

/// Before `request_feedback`.
pub fn request_start(run_id: &str, kind: &str, phase: &str, step: &str) -> String {
    block(&[
        "🎯 STARTING: Feedback Handler (request-feedback)",
        &format!("Run ID: {}", one_line(run_id)),
        &format!("Type: {}", one_line(kind)),
        &format!("Phase: {}", one_line(phase)),
        &format!("Step: {}", one_line(step)),
        RULE,
    ])
}

/// After a successful `request_feedback`; `reply` is its reply.
pub fn request_end(reply: &Value) -> String {
    let sent = &reply["notifications"];
    let mark = |name: &str| if sent[name] == true { "✓" } else { "✗" };
    let mut lines = vec![
        "✅ COMPLETED: Feedback Handler (request-feedback)".to_owned(),
        format!("Request ID: {}", one_line(&plain(&reply["details"]["request_id"]))),
        format!("Notifications: CLI {}, Issue Comment {}", mark("cli"), mark("issue_comment")),
    ];
    if let Some(url) = sent["comment_url"].as_str() {
        lines.push(format!("Comment URL: {}", one_line(url)));
    }
    lines.push(RULE.to_owned());
    lines.push("Status: awaiting_feedback".to_owned());
    lines.push("Next: User must provide feedback to continue".to_owned());
    block(&lines)
}

/// Before `process_response`.
pub fn response_start(request_id: &str, response: &str) -> String {
    block(&[
        "🎯 STARTING: Feedback Handler (process-response)",
        &format!("Request ID: {}", one_line(request_id)),
        &format!("Response: {}", one_line(response)),
        RULE,
    ])
}

/// After a successful `process_response`; `reply` is its reply.
pub fn response_end(reply: &Value) -> String {
    let result = &reply["result"];
    let text = |value: &Value| one_line(&plain(value));
    let (action, point) = (text(&result["action"]), &result["resume_point"]);
    let (phase, step) = (text(&point["phase"]), text(&point["step"]));
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

/// The question as a person sees it: phase, step, type, prompt, summary, artifact, numbered options.
///
/// Control characters are left out, so that no prompt can move the cursor or recolour the screen; a prompt keeps its
/// line ends.
pub fn question(
    phase: &str,
    step: &str,
    kind: &str,
    prompt: &str,
    options: &[Value],
    context: &Map<String, Value>,
) -> String {
    let mut lines = vec![
        format!(
            "❓ Feedback requested ({}) in {}:{}",
            one_line(kind),
            one_line(phase),
            one_line(step)
        ),
        String::new(),
    ];
    lines.extend(prompt.lines().map(printable));
    for (label, name) in [("Summary", "summary"), ("Artifact", "artifact_path")] {
        let text = context
            .get(name)
            .filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
            .map(plain);
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            lines.push(String::new());
            lines.push(format!("{label}:"));
            lines.extend(text.trim_end().lines().map(|line| format!("  {}", printable(line))));
        }
    }
    if !options.is_empty() {
        lines.push(String::new());
        for (at, option) in options.iter().enumerate() {
            let option = plain(option);
            let meaning =
                description(kind, &option).map_or_else(String::new, |text| format!(" - {text}"));
            lines.push(format!("  {}. {}{meaning}", at + 1, one_line(&option)));
        }
    }
    block(&lines)
}

fn block(lines: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    for line in lines {
        out.push_str(line.as_ref());
        out.push('\n');
    }
    out
}

/// Without control characters, and without those that reorder what stands beside them.
pub fn printable(text: &str) -> String {
    let reorders = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|&c| c == '\t' || !(c.is_control() || reorders(c))).collect()
}

/// As [`printable`], line ends as blanks.
fn one_line(text: &str) -> String {
    printable(&text.replace("\r\n", " ").replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn banners_of_a_request() {
        assert_eq!(
            request_start("a/b/c", "approval", "build", "x"),
            "🎯 STARTING: Feedback Handler (request-feedback)\nRun ID: a/b/c\nType: approval\nPhase: build\nStep: x\n───────────────────────────────────────\n"
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
            response_start("fr-1", "two\nlines"),
            "🎯 STARTING: Feedback Handler (process-response)\nRequest ID: fr-1\nResponse: two lines\n───────────────────────────────────────\n"
        );
        let reply = |action: &str| json!({"result": {"action": action, "resume_point": {"phase": "build", "step": "x", "step_index": null}}});
        assert_eq!(
            response_end(&reply("continue")),
            "✅ COMPLETED: Feedback Handler (process-response)\nAction: continue\nResume Point: build:x\n───────────────────────────────────────\nNext: Workflow will resume from x\n"
        );
        assert!(response_end(&reply("abort")).ends_with("Next: Workflow will be cancelled\n"));
    }

    #[test]
    fn a_question_shows_all_and_controls_nothing() {
        let context =
            json!({"summary": "two\ntiers\u{7}", "artifact_path": "/specs/x.md", "more": 1});
        let options = [json!("approve"), json!("\u{1b}[31mreject"), json!("a\u{202e}b")];
        let text = question(
            "build",
            "x",
            "approval",
            "Is\r\nit \u{1b}]0;t\u{7}ok?",
            &options,
            context.as_object().unwrap(),
        );
        assert_eq!(
            text,
            "❓ Feedback requested (approval) in build:x\n\nIs\nit ]0;tok?\n\nSummary:\n  two\n  tiers\n\nArtifact:\n  /specs/x.md\n\n  1. approve - Continue to next phase\n  2. [31mreject\n  3. ab\n"
        );
        let free = question("p", "s", "clarification", "Which?", &[], &Map::new());
        assert_eq!(free, "❓ Feedback requested (clarification) in p:s\n\nWhich?\n");
    }
}
