//! The words that address us in a comment, and their flags (§16, rule 3).

use super::markdown::code_spans;

/// `@faber resume --run X --request Y`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trigger {
    /// `resume`, `status` or `cancel`.
    pub(super) command: &'static str,
    pub(super) run: Option<String>,
    pub(super) request: Option<String>,
}

const COMMANDS: [&str; 3] = ["resume", "status", "cancel"];

/// The text without any trigger, and the first of them. Inline code never holds one.
pub(super) fn take(text: &str) -> (String, Option<Trigger>) {
    let spans = code_spans(text);
    let mut spans = spans.iter().peekable();
    let (mut out, mut first) = (String::with_capacity(text.len()), None);
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('@').map(|offset| at + offset) {
        at = found + 1;
        let starts_word = text[..found].chars().next_back().is_none_or(char::is_whitespace);
        while spans.next_if(|span| span.end <= found).is_some() {}
        if !starts_word || spans.peek().is_some_and(|span| span.contains(&found)) {
            continue;
        }
        if let Some((trigger, length)) = trigger(&text[found..]) {
            out.push_str(&text[copied..found]);
            copied = found + length;
            at = copied;
            first.get_or_insert(trigger);
        }
    }
    out.push_str(&text[copied..]);
    (out, first)
}

/// A trigger at the start of the text, with its length.
fn trigger(text: &str) -> Option<(Trigger, usize)> {
    let rest = after_blanks(strip_word(text, "@faber")?)?;
    let (command, mut rest) = COMMANDS
        .iter()
        .find_map(|command| strip_word(rest, command).map(|rest| (*command, rest)))?;
    if rest.chars().next().is_some_and(|next| next.is_alphanumeric() || matches!(next, '_' | '-')) {
        return None;
    }
    let mut trigger = Trigger { command, run: None, request: None };
    while let Some((name, value, after)) = flag(rest) {
        let slot = if name == "--run" { &mut trigger.run } else { &mut trigger.request };
        slot.get_or_insert_with(|| value.to_owned());
        rest = after;
    }
    Some((trigger, text.len() - rest.len()))
}

/// ` --run X` or ` --request X` at the start of the text.
fn flag(text: &str) -> Option<(&'static str, &str, &str)> {
    let text = after_blanks(text)?;
    let (name, rest) = ["--run", "--request"]
        .iter()
        .find_map(|name| Some((*name, after_blanks(strip_word(text, name)?)?)))?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    (end > 0).then(|| (name, &rest[..end], &rest[end..]))
}

/// What follows `word`, in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// What follows at least one blank of the same line.
fn after_blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches([' ', '\t']);
    (rest.len() < text.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_stand_as_words_of_their_own() {
        for (text, command, left) in [
            ("@faber resume", Some("resume"), ""),
            ("ok @faber resume", Some("resume"), "ok "),
            ("ok\n\t@FABER  Resume\nmore", Some("resume"), "ok\n\t\nmore"),
            ("@faber resume, please", Some("resume"), ", please"),
            ("@faber resume.", Some("resume"), "."),
            ("@faber status @faber cancel", Some("status"), " "),
            ("x@faber resume", None, "x@faber resume"),
            ("(@faber resume)", None, "(@faber resume)"),
            ("@faber resumed", None, "@faber resumed"),
            ("@faber resume-all", None, "@faber resume-all"),
            ("@faber resume_x", None, "@faber resume_x"),
            ("@faber resumé", None, "@faber resumé"),
            ("@faber resumeé", None, "@faber resumeé"),
            ("@faber\nresume", None, "@faber\nresume"),
            ("@faberresume", None, "@faberresume"),
            ("`@faber resume`", None, "`@faber resume`"),
            ("`a @faber resume b` @faber cancel", Some("cancel"), "`a @faber resume b` "),
            ("@", None, "@"),
            ("@fabeé resume", None, "@fabeé resume"),
        ] {
            let (rest, trigger) = take(text);
            assert_eq!((trigger.map(|t| t.command), rest.as_str()), (command, left), "{text:?}");
        }
    }

    #[test]
    fn flags_follow_the_command() {
        let all = |text: &str| take(text).1.map(|t| (t.run, t.request));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(all("@faber resume --run a/b/c"), Some((some("a/b/c"), None)));
        assert_eq!(all("@faber resume --request fr-1 --run x y"), Some((some("x"), some("fr-1"))));
        assert_eq!(all("@faber resume --run"), Some((None, None)));
        assert_eq!(all("@faber resume\n--run x"), Some((None, None)));
        assert_eq!(all("@faber resume please --run x"), Some((None, None)));
        assert_eq!(all("@faber status\n@faber resume --run x"), Some((None, None)));
        assert_eq!(take("a @faber resume --run x b").0, "a  b");
        assert_eq!(take("@faber resume --runs x").0, " --runs x");
    }
}
