//! The issue comment, byte for byte (§12).

use serde_json::{Map, Value};

use crate::codes::{Code, Refusal};
use crate::params::{context, json_array, plain};
use crate::run_id::RunId;
use crate::types::description;

/// Everything a comment shows. Values are put in as they are: no Markdown escaping, no expansion.
#[derive(Debug, Clone, Copy)]
pub struct Comment<'a> {
    /// The run, shown twice.
    pub run_id: &'a RunId,
    /// The request, as it is.
    pub request_id: &'a str,
    /// Type word; only chooses descriptions, so any word will do.
    pub kind: &'a str,
    /// Shown with its first character in upper case.
    pub phase: &'a str,
    /// Shown as it is.
    pub step: &'a str,
    /// Shown as it is, not trimmed.
    pub prompt: &'a str,
    /// One numbered line each.
    pub options: &'a [Value],
    /// `summary` and `artifact_path` are shown, the rest is not.
    pub context: &'a Map<String, Value>,
    /// Shown as it is.
    pub timestamp: &'a str,
}

/// What `format_feedback_comment` is given, as text (§13).
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the parameters of the contract")]
pub struct CommentParams<'a> {
    pub run_id: &'a str,
    pub request_id: &'a str,
    pub kind: &'a str,
    pub phase: &'a str,
    pub step: &'a str,
    pub prompt: &'a str,
    pub options: &'a str,
    pub context: &'a str,
    /// Empty: `now`.
    pub timestamp: &'a str,
}

impl CommentParams<'_> {
    /// Checks the parameters and writes the comment; `now` stands in for a missing timestamp.
    ///
    /// # Errors
    /// `MISSING_FIELDS`, `INVALID_RUN_ID`, `INVALID_OPTIONS`, `INVALID_CONTEXT`, in this order. There is no partial output.
    pub fn render(&self, now: &str) -> Result<String, Refusal> {
        let missing: Vec<&str> = [
            ("run_id", self.run_id),
            ("request_id", self.request_id),
            ("type", self.kind),
            ("phase", self.phase),
            ("step", self.step),
            ("prompt", self.prompt),
        ]
        .iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(name, _)| *name)
        .collect();
        if !missing.is_empty() {
            return Err(Refusal::missing(&missing));
        }
        let run_id =
            RunId::parse(self.run_id).ok_or_else(|| Refusal::invalid_run_id(self.run_id))?;
        let options =
            json_array(self.options, "options", Code::InvalidOptions)?.unwrap_or_default();
        let context = context(self.context)?;
        Ok(Comment {
            run_id: &run_id,
            request_id: self.request_id,
            kind: self.kind,
            phase: self.phase,
            step: self.step,
            prompt: self.prompt,
            options: &options,
            context: &context,
            timestamp: if self.timestamp.is_empty() { now } else { self.timestamp },
        }
        .render())
    }
}

impl Comment<'_> {
    /// The whole text; lines end in LF and the text with exactly one.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(1024 + self.prompt.len());
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.push_str(part));
        put(&["## Feedback Requested\n\n**Workflow Run**: `", &self.run_id.to_string(), "`\n"]);
        put(&["**Phase**: ", &capitalised(self.phase), "\n**Step**: ", self.step, "\n"]);
        put(&[
            "**Requested**: ",
            self.timestamp,
            "\n\n### Decision Needed\n\n",
            self.prompt,
            "\n\n",
        ]);
        if let Some(summary) = self.shown("summary") {
            put(&["**Summary**:\n", &summary, "\n\n"]);
        }
        if let Some(path) = self.shown("artifact_path") {
            put(&["**Artifact**: [", last_component(&path), "](", &path, ")\n\n"]);
        }
        put(&["### Options\n\n"]);
        for (at, option) in self.options.iter().enumerate() {
            let option = one_line(plain(option).trim());
            put(&[&(at + 1).to_string(), ". **", &option, "**"]);
            if let Some(description) = description(self.kind, &option) {
                put(&[" - ", description]);
            }
            put(&["\n"]);
        }
        put(&["\n### How to Respond\n\n", HOW_TO_RESPOND]);
        put(&[&question_footer(self.run_id, self.request_id)]);
        out
    }

    /// A context member as it is shown; absent, null, false and what is empty without its trailing newlines are not.
    fn shown(&self, name: &str) -> Option<String> {
        let text = match self.context.get(name)? {
            Value::Null | Value::Bool(false) => return None,
            value => plain(value),
        };
        let text = text.trim_end_matches('\n');
        (!text.is_empty()).then(|| text.to_owned())
    }
}

const HOW_TO_RESPOND: &str = "\
Reply to this issue with your decision. Include `@faber resume` in your comment to trigger workflow continuation.

**Example response:**
```
I approve this design. The approach looks good.

@faber resume
```

";

/// The end of a text that is ours.
pub(crate) fn question_footer(run_id: &RunId, request_id: &str) -> String {
    format!(
        "---\n_This feedback request will remain open until addressed._\n_Run ID: `{run_id}` | Request ID: `{request_id}`_\n"
    )
}

/// Whether the text is a question of ours, or holds all of one.
pub(crate) fn is_question(body: &str) -> bool {
    body.lines().any(is_last_line)
}

/// Whether a line is the last line of a comment of ours: such a text never answers itself (§16, rule 1).
pub(crate) fn is_last_line(line: &str) -> bool {
    let ids = line.strip_prefix("_Run ID: `").and_then(|rest| rest.strip_suffix("`_"));
    ids.and_then(|ids| ids.split_once("` | Request ID: `")).is_some_and(|(run, request)| {
        !run.is_empty() && !request.is_empty() && !run.contains('`') && !request.contains('`')
    })
}

fn capitalised(phase: &str) -> String {
    let mut rest = phase.chars();
    let Some(first) = rest.next() else { return String::new() };
    // A character whose upper case is several (`ß`) stays, as in a shell's `${phase^}`.
    let mut upper = first.to_uppercase();
    let first = if upper.len() == 1 { upper.next().unwrap_or(first) } else { first };
    format!("{first}{}", rest.as_str())
}

fn last_component(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

/// An option is one line of a numbered list, whatever it holds.
fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_start_with_a_capital() {
        for (phase, want) in [
            ("architect", "Architect"),
            ("code_review", "Code_review"),
            ("QA", "QA"),
            ("éval", "Éval"),
            ("ßtep", "ßtep"),
            ("設計", "設計"),
            ("1st", "1st"),
        ] {
            assert_eq!(capitalised(phase), want);
        }
    }

    #[test]
    fn labels_are_last_components() {
        for (path, want) in [
            ("a/b/", "b"),
            ("/", "/"),
            ("//", "/"),
            ("specs//x.md//", "x.md"),
            ("README.md", "README.md"),
            ("https://example.com/specs/design.md", "design.md"),
        ] {
            assert_eq!(last_component(path), want);
        }
    }

    fn comment(options: &str, context: &str) -> String {
        CommentParams {
            run_id: "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100",
            request_id: "fr-20251206-a1b2c3",
            kind: "approval",
            phase: "build",
            step: "s",
            prompt: "p",
            options,
            context,
            timestamp: "",
        }
        .render("2025-12-06 18:00 UTC")
        .unwrap()
    }

    #[test]
    fn an_option_is_one_line() {
        let text = comment(r#"["a\nb", "c\r\nd", 7, {"k": [1.50]}]"#, "");
        assert!(
            text.contains("\n1. **a b**\n2. **c d**\n3. **7**\n4. **{\"k\":[1.50]}**\n\n### How"),
            "{text}"
        );
    }

    #[test]
    fn empty_context_members_are_not_shown() {
        for context in [
            "",
            "null",
            "{}",
            r#"{"summary":null,"artifact_path":false}"#,
            r#"{"summary":"","artifact_path":"\n\n"}"#,
        ] {
            assert_eq!(comment("[]", context), comment("[]", ""), "{context}");
        }
        assert!(comment("[]", r#"{"summary":true}"#).contains("**Summary**:\ntrue\n\n### Options"));
        assert!(comment("[]", r#"{"artifact_path":"/"}"#).contains("**Artifact**: [/](/)\n"));
    }

    #[test]
    fn our_own_last_line_is_known() {
        let text = comment("[]", "");
        assert!(is_last_line(text.trim_end().rsplit('\n').next().unwrap()));
        for line in [
            "",
            "_Run ID: `a`_",
            "> _Run ID: `a` | Request ID: `b`_",
            "_Run ID: `a` | Request ID: `b`_ ",
            "_Run ID: `` | Request ID: `b`_",
        ] {
            assert!(!is_last_line(line), "{line}");
        }
    }

    #[test]
    fn checks_come_in_order() {
        let good = CommentParams {
            run_id: "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100",
            request_id: "r",
            kind: "t",
            phase: "p",
            step: "s",
            prompt: "q",
            ..CommentParams::default()
        };
        let code = |params: CommentParams<'_>| params.render("now").unwrap_err().code;
        assert_eq!(code(CommentParams { run_id: "", options: "{", ..good }), Code::MissingFields);
        assert_eq!(code(CommentParams { run_id: "x", options: "{", ..good }), Code::InvalidRunId);
        assert_eq!(
            code(CommentParams { options: "null", context: "[]", ..good }),
            Code::InvalidOptions
        );
        assert_eq!(code(CommentParams { context: "[]", ..good }), Code::InvalidContext);
    }
}
