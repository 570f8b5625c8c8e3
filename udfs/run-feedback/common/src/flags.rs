//! The flags of the scripts and the parameters they stand for (§13). A flag `--a-b` is parameter `a_b`.

use crate::codes::{Code, Refusal};
use crate::operation::Operation;

/// How a flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The next argument, whatever it looks like.
    Value,
    /// The next argument if it is `true` or `false`; otherwise the flag alone means `true`.
    Switch,
}

use Kind::{Switch, Value};

/// Flags of an operation: name without the dashes, kind.
fn flags(operation: Operation) -> &'static [(&'static str, Kind)] {
    match operation {
        Operation::GenerateRequestId => &[],
        Operation::FormatFeedbackComment => &[
            ("run-id", Value),
            ("request-id", Value),
            ("type", Value),
            ("phase", Value),
            ("step", Value),
            ("prompt", Value),
            ("options", Value),
            ("context", Value),
            ("timestamp", Value),
        ],
        Operation::GetUserIdentity => &[("source", Value), ("issue-author", Value)],
        Operation::EmitEvent => &[
            ("run-id", Value),
            ("type", Value),
            ("phase", Value),
            ("step", Value),
            ("status", Value),
            ("message", Value),
            ("metadata", Value),
            ("artifacts", Value),
            ("duration-ms", Value),
            ("error", Value),
            ("source", Value),
            ("base-path", Value),
        ],
        Operation::UpdateFeedbackState => &[
            ("run-id", Value),
            ("operation", Value),
            ("request-id", Value),
            ("type", Value),
            ("prompt", Value),
            ("options", Value),
            ("context", Value),
            ("phase", Value),
            ("step", Value),
            ("step-index", Value),
            ("comment-url", Value),
            ("cli-notified", Switch),
            ("response", Value),
            ("user", Value),
            ("source", Value),
            ("cli", Switch),
            ("base-path", Value),
        ],
        Operation::InitRun => &[
            ("run-id", Value),
            ("work-id", Value),
            ("target", Value),
            ("workflow", Value),
            ("autonomy", Value),
            ("source-type", Value),
            ("phases", Value),
            ("parent-run", Value),
            ("rerun-of", Value),
            ("base-path", Value),
        ],
        Operation::GetRun => &[("run-id", Value), ("include-events", Switch), ("base-path", Value)],
        Operation::ListRuns => &[
            ("org", Value),
            ("project", Value),
            ("work-id", Value),
            ("status", Value),
            ("limit", Value),
            ("base-path", Value),
        ],
        Operation::ListPending => {
            &[("org", Value), ("project", Value), ("work-id", Value), ("base-path", Value)]
        }
        Operation::ResumeRun => &[("run-id", Value), ("step", Value), ("base-path", Value)],
        Operation::GenerateRunId => &[("org", Value), ("project", Value), ("uuid-only", Switch)],
        Operation::ParseIssueReply => {
            &[("body", Value), ("type", Value), ("options", Value), ("previous-body", Value)]
        }
        Operation::RequestFeedback => &[
            ("run-id", Value),
            ("phase", Value),
            ("step", Value),
            ("feedback-type", Value),
            ("type", Value),
            ("prompt", Value),
            ("options", Value),
            ("context", Value),
            ("step-index", Value),
            ("work-id", Value),
            ("post-to-issue", Switch),
            ("cli-prompt", Switch),
            ("replace", Switch),
            ("base-path", Value),
        ],
        Operation::ProcessResponse => &[
            ("run-id", Value),
            ("request-id", Value),
            ("response", Value),
            ("comment", Value),
            ("source", Value),
            ("user", Value),
            ("base-path", Value),
        ],
    }
}

/// Turns arguments into parameters; a flag given twice keeps its last value, as in the scripts.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown flag, a value without flag, or a flag without value.
pub fn parse(operation: Operation, arguments: &[String]) -> Result<Vec<(String, String)>, Refusal> {
    let refused = |why: String| Refusal::new(Code::InvalidArgument, why);
    let known = flags(operation);
    let mut params: Vec<(String, String)> = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let Some((name, kind)) = argument
            .strip_prefix("--")
            .and_then(|name| known.iter().find(|(flag, _)| *flag == name))
        else {
            let list: Vec<String> = known.iter().map(|(flag, _)| format!("--{flag}")).collect();
            return Err(refused(format!(
                "unknown argument {argument:?}; known: {}",
                list.join(" ")
            )));
        };
        let value = match kind {
            Switch => match rest.next_if(|next| matches!(next.as_str(), "true" | "false")) {
                Some(word) => word.clone(),
                None => "true".to_owned(),
            },
            Value => {
                rest.next().cloned().ok_or_else(|| refused(format!("--{name} needs a value")))?
            }
        };
        let param = param(operation, name);
        params.retain(|(known, _)| *known != param);
        params.push((param, value));
    }
    Ok(params)
}

/// `{op} --flag VALUE…`, one line of help.
pub fn usage(operation: Operation) -> String {
    let mut line = operation.name().replace('_', "-");
    for (flag, kind) in flags(operation) {
        line.push_str(&match kind {
            Value => format!(" [--{flag} VALUE]"),
            Switch => format!(" [--{flag} [true|false]]"),
        });
    }
    line
}

fn param(operation: Operation, flag: &str) -> String {
    match (operation, flag) {
        (Operation::RequestFeedback, "type") => "feedback_type".to_owned(),
        _ => flag.replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &[&str]) -> Vec<String> {
        line.iter().map(|&word| word.to_owned()).collect()
    }

    fn pairs(operation: Operation, line: &[&str]) -> Result<Vec<(String, String)>, Code> {
        parse(operation, &args(line)).map_err(|refusal| refusal.code)
    }

    fn params(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn flags_become_parameters() {
        assert_eq!(
            pairs(
                Operation::EmitEvent,
                &["--run-id", "r", "--duration-ms", "-5", "--message", "--type"]
            ),
            Ok(params(&[("run_id", "r"), ("duration_ms", "-5"), ("message", "--type")]))
        );
        assert_eq!(
            pairs(Operation::RequestFeedback, &["--type", "approval"]),
            Ok(params(&[("feedback_type", "approval")]))
        );
        assert_eq!(
            pairs(Operation::RequestFeedback, &["--type", "a", "--feedback-type", "b"]),
            Ok(params(&[("feedback_type", "b")]))
        );
        assert_eq!(
            pairs(Operation::UpdateFeedbackState, &["--type", ""]),
            Ok(params(&[("type", "")]))
        );
    }

    #[test]
    fn switches_need_no_value() {
        assert_eq!(
            pairs(Operation::GenerateRunId, &["--uuid-only", "--org", "a"]),
            Ok(params(&[("uuid_only", "true"), ("org", "a")]))
        );
        assert_eq!(
            pairs(Operation::RequestFeedback, &["--cli-prompt", "false", "--replace"]),
            Ok(params(&[("cli_prompt", "false"), ("replace", "true")]))
        );
    }

    #[test]
    fn unknown_flags_and_missing_values_are_refused() {
        for (operation, line) in [
            (Operation::GenerateRequestId, &["--x"][..]),
            (Operation::EmitEvent, &["--run-id"]),
            (Operation::EmitEvent, &["--run_id", "r"]),
            (Operation::EmitEvent, &["-run-id", "r"]),
            (Operation::EmitEvent, &["r"]),
            (Operation::EmitEvent, &["--run-id=r"]),
        ] {
            assert_eq!(pairs(operation, line), Err(Code::InvalidArgument), "{line:?}");
        }
    }
}
