//! A question as a person sees it on a terminal. Its words are those of the issue comment, which the project writes.

use serde_json::Value;

use super::banner::{one_line, printable};
use super::project::Params;

/// An open request.
#[derive(Debug)]
pub(super) struct Question {
    head: String,
    /// Prompt, summary, artifact, numbered options with their descriptions.
    body: String,
    options: Vec<String>,
    /// Whether any text is an answer.
    is_free: bool,
}

impl Question {
    /// From the stored request, its details and its comment.
    pub(super) fn new(request: &Value, details: &Value, comment: &str) -> Question {
        let shown = |name: &str| one_line(&details[name]);
        let options = request["options"].as_array().map_or(&[][..], Vec::as_slice);
        Question {
            head: format!("❓ {} needed in {}:{}", shown("type"), shown("phase"), shown("step")),
            body: body(comment),
            is_free: details["type"] == "clarification",
            options: options
                .iter()
                .map(|option| option.as_str().map_or_else(|| option.to_string(), str::to_owned))
                .collect(),
        }
    }

    /// All of it.
    pub(super) fn text(&self) -> String {
        format!("\n{}\n\n{}\n\n", self.head, self.body)
    }

    /// What stands before the person's answer.
    pub(super) fn prompt(&self) -> &'static str {
        match (self.options.is_empty(), self.is_free) {
            (true, _) => "Answer (empty to leave it open): ",
            (false, true) => "Answer, in your words or as number (empty to leave it open): ",
            (false, false) => "Answer, as word or number (empty to leave it open): ",
        }
    }

    /// The answer that a line stands for: an option, the number of one, or, where any text will do, the line.
    ///
    /// # Errors
    /// What is on offer, for the person who asked for something else.
    pub(super) fn understood(&self, line: &str) -> Result<String, String> {
        let named = self
            .options
            .iter()
            .find(|option| *option == line)
            .or_else(|| self.options.iter().find(|option| option.eq_ignore_ascii_case(line)));
        let numbered = || {
            let number = line.parse::<usize>().ok()?;
            self.options.get(number.checked_sub(1)?)
        };
        match named.or_else(numbered) {
            Some(option) => Ok(option.clone()),
            None if self.is_free => Ok(line.to_owned()),
            None => Err(printable(&format!(
                "{line:?} is not offered; one of: {}",
                self.options.join(", ")
            ))),
        }
    }
}

/// Parameters of `format_feedback_comment` for a stored request.
pub(super) fn comment_params(run: &Value, details: &Value) -> Params {
    let request = &run["state"]["feedback_request"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    [
        ("run_id", &run["run_id"]),
        ("request_id", &request["request_id"]),
        ("type", &request["type"]),
        ("phase", &details["phase"]),
        ("step", &details["step"]),
        ("prompt", &request["prompt"]),
        ("options", &request["options"]),
        ("context", &request["context"]),
    ]
    .map(|(name, value)| (name.to_owned(), text(value)))
    .to_vec()
}

/// The part of a comment between its head and the words on how to reply, without Markdown marks of ours.
fn body(comment: &str) -> String {
    const OPTIONS: &str = "### Options\n";
    let start = comment
        .find("### Decision Needed\n\n")
        .map_or(0, |at| at + "### Decision Needed\n\n".len());
    let end = comment.rfind("\n### How to Respond").unwrap_or(comment.len());
    let text = comment.get(start..end).unwrap_or(comment);
    let (said, options) = text.rsplit_once(OPTIONS).unwrap_or((text, ""));
    let mut lines: Vec<String> = said.lines().map(printable).collect();
    lines.extend(
        options
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| format!("  {}", printable(&unmarked(line)))),
    );
    lines.join("\n").trim_end().to_owned()
}

/// `1. **approve** - …` without the stars.
fn unmarked(line: &str) -> String {
    let parts =
        line.split_once(". **").and_then(|(number, rest)| Some((number, rest.split_once("**")?)));
    match parts {
        Some((number, (option, rest))) => format!("{number}. {option}{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COMMENT: &str = "## Feedback Requested\n\n**Phase**: Build\n\n### Decision Needed\n\nIs it\u{1b}[31m ok?\n\n**Summary**:\ntwo\n\n### Options\n\n1. **approve** - Continue to next phase\n2. **a*b**\n\n### How to Respond\n\nReply\n";

    fn question() -> Question {
        let details = json!({"type": "approval", "phase": "build", "step": "x"});
        Question::new(&json!({"options": ["approve", "a*b"]}), &details, COMMENT)
    }

    #[test]
    fn it_shows_everything_and_controls_nothing() {
        assert_eq!(
            question().text(),
            "\n❓ approval needed in build:x\n\nIs it[31m ok?\n\n**Summary**:\ntwo\n\n  1. approve - Continue to next phase\n  2. a*b\n\n"
        );
    }

    #[test]
    fn a_line_means_an_option_or_itself() {
        let asked = question();
        for (line, want) in [
            ("1", Some("approve")),
            ("2", Some("a*b")),
            ("approve", Some("approve")),
            ("APPROVE", Some("approve")),
            ("3", None),
            ("0", None),
            ("so so", None),
        ] {
            assert_eq!(asked.understood(line).ok().as_deref(), want, "{line}");
        }
        assert_eq!(
            asked.understood("so so").unwrap_err(),
            "\"so so\" is not offered; one of: approve, a*b"
        );
        let numbers = Question { options: vec!["2".into(), "1".into()], ..question() };
        assert_eq!(numbers.understood("1").unwrap(), "1", "an option that is a number is itself");
        let free = Question { is_free: true, ..question() };
        for (line, want) in [("2", "a*b"), ("3", "3"), ("so so", "so so")] {
            assert_eq!(free.understood(line).unwrap(), want, "{line}");
        }
    }

    #[test]
    fn a_stored_request_becomes_parameters() {
        let run = json!({"run_id": "r", "state": {"feedback_request": {"request_id": "fr-1", "type": "t", "prompt": "p", "options": ["a"], "context": {}}}});
        let params = comment_params(&run, &json!({"phase": "build", "step": "x"}));
        let texts: Vec<&str> = params.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["r", "fr-1", "t", "build", "x", "p", r#"["a"]"#, "{}"]);
    }
}
