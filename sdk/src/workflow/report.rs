//! Reads a checker's report: a pure function from its text to what it proved (workflow-engine contract §7).
//!
//! Soundness comes first: a report that contradicts itself is never a pass.

use super::clip::head;

/// What a driver writes into a result when the model provider was down; such a result says nothing
/// about the work.
pub const OUTAGE_MARKER: &str = "[INFRA:LLM_UNAVAILABLE]";

/// Phrases by which a browser-driving checker names its own tools. Network errors are not among them:
/// they are also what a broken product shows.
pub const BROWSER_TOOL_MARKERS: &[&str] = &[
    "mcp server connection lost",
    "browser mcp",
    "browser is unavailable",
    "browser tool",
    "no features could be tested",
    "could not launch a browser",
];

const NOTE_CHARS: usize = 300;
const NAME_CHARS: usize = 120;
const FAIL_WORDS: &[&str] = &["FAILED", "FAILS", "FAIL"];
const PASS_WORDS: &[&str] = &["PASSED", "PASSES", "PASS"];

/// What the report amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// The provider was down: nothing was checked.
    Infra,
    /// Everything in scope was verified.
    Pass,
    /// The product misbehaved.
    Defects,
    /// Nothing was found broken, but not everything was reached.
    Incomplete,
    /// The check learned nothing: its tools failed, it crashed, or it gave no verdict.
    Blocked,
}

impl ReportKind {
    /// The word in the journal.
    pub fn word(self) -> &'static str {
        match self {
            Self::Infra => "infra",
            Self::Pass => "pass",
            Self::Defects => "defects",
            Self::Incomplete => "incomplete",
            Self::Blocked => "blocked",
        }
    }
}

/// The verdict after all rules, which may differ from the word in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `PASS`.
    Pass,
    /// `FAIL`.
    Fail,
    /// `BLOCKED`.
    Blocked,
}

impl Verdict {
    /// The word as reports write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Blocked => "BLOCKED",
        }
    }
}

/// A report, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// What it amounts to.
    pub kind: ReportKind,
    /// `None`: it gave none, or the provider was down.
    pub verdict: Option<Verdict>,
    /// Names of the features it declared passed, in order. Only for defects and incomplete reports.
    pub passed: Vec<String>,
    /// Whole lines of the features it declared failed, in order. Only for defects.
    pub failures: Vec<String>,
    /// What stood behind a separator on the line of the first verdict, at most 300 characters.
    pub note: Option<String>,
}

/// Reads `report` with the tool phrases of [`BROWSER_TOOL_MARKERS`]; a missing report reads as empty.
pub fn parse(report: Option<&str>) -> CheckReport {
    parse_with(report, BROWSER_TOOL_MARKERS)
}

/// Reads `report`; `tool_markers` are the domain's phrases, in lower case, that name the checker's own tools.
pub fn parse_with(report: Option<&str>, tool_markers: &[&str]) -> CheckReport {
    let text = line_feeds(report.unwrap_or_default());
    let text = text.as_ref();
    if text.contains(OUTAGE_MARKER) {
        return CheckReport::bare(ReportKind::Infra, None, None);
    }
    let Some(found) = verdict(text) else {
        return CheckReport::bare(ReportKind::Blocked, None, None);
    };
    let note = found.note;
    let section = feature_section(text);
    let declared = Declared::read(section);
    let carries = |part: &str| {
        let part = part.to_lowercase();
        tool_markers.iter().any(|marker| part.contains(marker))
    };
    match found.verdict {
        Verdict::Pass if declared.failed.is_empty() => {
            return if declared.not_reached == 0 {
                CheckReport::bare(ReportKind::Pass, Some(Verdict::Pass), note)
            } else {
                CheckReport {
                    passed: declared.passed,
                    ..CheckReport::bare(ReportKind::Incomplete, Some(Verdict::Fail), note)
                }
            };
        }
        Verdict::Blocked
            if carries(text) || (declared.failed.is_empty() && declared.not_reached == 0) =>
        {
            return CheckReport::bare(ReportKind::Blocked, Some(Verdict::Blocked), note);
        }
        Verdict::Pass | Verdict::Blocked | Verdict::Fail => {}
    }
    let mut failures = declared.failed;
    if carries(text) {
        failures.retain(|line| !carries(line));
        if failures.is_empty() {
            return CheckReport::bare(ReportKind::Blocked, Some(Verdict::Blocked), note);
        }
    }
    let unreached = failures.is_empty() && find_ignoring_case(section, "NOT REACHED", 0).is_some();
    let kind = if unreached { ReportKind::Incomplete } else { ReportKind::Defects };
    CheckReport { kind, verdict: Some(Verdict::Fail), passed: declared.passed, failures, note }
}

impl CheckReport {
    fn bare(kind: ReportKind, verdict: Option<Verdict>, note: Option<String>) -> Self {
        Self { kind, verdict, passed: Vec::new(), failures: Vec::new(), note }
    }
}

fn line_feeds(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    }
}

struct FoundVerdict {
    verdict: Verdict,
    note: Option<String>,
}

/// Collects every verdict token, but for the template echoed back.
fn verdict(text: &str) -> Option<FoundVerdict> {
    let mut found: Option<FoundVerdict> = None;
    let mut from = 0;
    while let Some(at) = find_ignoring_case(text, "VERDICT", from) {
        from = at + "VERDICT".len();
        let Some((verdict, rest)) = verdict_word(&text[from..]) else { continue };
        if is_template(verdict, rest) {
            continue;
        }
        match &mut found {
            None => {
                let line = rest.split('\n').next().unwrap_or_default();
                found = Some(FoundVerdict { verdict, note: note(line) });
            }
            Some(first) => first.verdict = harsher(first.verdict, verdict),
        }
    }
    found
}

/// Whether the line goes on with `|`, as the template does. A pass is no choice either when something else is offered
/// beside it, as in `PASS/FAIL` and `PASSED | FAILED`: whoever copies that has not chosen.
fn is_template(verdict: Verdict, rest: &str) -> bool {
    // Neither blanks nor emphasis lead to the next line.
    if rest.trim_start_matches(is_blank_or_emphasis).starts_with('|') {
        return true;
    }
    if verdict != Verdict::Pass {
        return false;
    }
    let rest =
        rest.trim_start_matches(char::is_alphabetic).trim_start_matches(is_blank_or_emphasis);
    let other = rest.strip_prefix(['/', '|']).or_else(|| {
        let (word, other) = rest.split_at_checked(2)?;
        (word.eq_ignore_ascii_case("or") && other.starts_with(is_blank)).then_some(other)
    });
    let Some(other) = other.map(|other| other.trim_start_matches(is_blank_or_emphasis)) else {
        return false;
    };
    VERDICTS.iter().any(|(word, other_verdict)| {
        *other_verdict != Verdict::Pass
            && other.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    })
}

/// The words of a verdict.
const VERDICTS: [(&str, Verdict); 5] = [
    ("PASS", Verdict::Pass),
    ("FAIL", Verdict::Fail),
    ("BLOCKED", Verdict::Blocked),
    ("INCOMPLETE", Verdict::Fail),
    ("PARTIAL", Verdict::Fail),
];

/// Reads what follows the word `VERDICT`; gives the verdict and the text behind its word.
fn verdict_word(after: &str) -> Option<(Verdict, &str)> {
    let after = after.trim_start_matches(is_emphasis).trim_start_matches(is_blank);
    let after = after.strip_prefix(':')?;
    let after = after.trim_start_matches(|c: char| c.is_whitespace() || is_emphasis(c));
    for (word, verdict) in VERDICTS {
        if let Some(start) = after.get(..word.len())
            && start.eq_ignore_ascii_case(word)
        {
            return Some((verdict, &after[word.len()..]));
        }
    }
    None
}

fn harsher(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Fail, _) | (_, Verdict::Fail) => Verdict::Fail,
        (Verdict::Blocked, _) | (_, Verdict::Blocked) => Verdict::Blocked,
        (Verdict::Pass, Verdict::Pass) => Verdict::Pass,
    }
}

/// The rest of the verdict's line behind a separator; `FAILED — x` drops the tail of its word first.
fn note(line: &str) -> Option<String> {
    let rest =
        line.trim_start_matches(char::is_alphabetic).trim_start_matches(is_blank_or_emphasis);
    let rest = rest.strip_prefix(is_separator)?;
    let rest = rest.trim_start_matches(|c| is_separator(c) || is_blank(c)).trim();
    (!rest.is_empty()).then(|| head(rest, NOTE_CHARS).to_owned())
}

/// What stands before the explanations: prose below `FAILURES` or `BLOCKED BY` declares nothing.
fn feature_section(text: &str) -> &str {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        for heading in ["FAILURES", "BLOCKED BY"] {
            let is_heading =
                body.get(..heading.len()).is_some_and(|h| h.eq_ignore_ascii_case(heading))
                    && ends_word(&body[heading.len()..]);
            if is_heading {
                return &text[..start];
            }
        }
        start += line.len();
    }
    text
}

/// What the lines of the feature section declare.
struct Declared {
    passed: Vec<String>,
    failed: Vec<String>,
    not_reached: usize,
}

impl Declared {
    fn read(section: &str) -> Self {
        let mut declared = Self { passed: Vec::new(), failed: Vec::new(), not_reached: 0 };
        for line in section.split('\n') {
            let Some(body) = bullet_body(line) else { continue };
            if body.contains("NOT REACHED") {
                declared.not_reached += 1;
            } else if let Some(name) = name_before(body, FAIL_WORDS, 0..=usize::MAX) {
                if !names_the_verdict(name) {
                    declared.failed.push(line.trim().to_owned());
                }
            } else if let Some(name) = name_before(body, PASS_WORDS, 1..=NAME_CHARS)
                && !names_the_verdict(name)
            {
                declared.passed.push(name.to_owned());
            }
        }
        declared
    }
}

/// The text of a bullet line: at most three blanks, a bullet, a blank.
fn bullet_body(line: &str) -> Option<&str> {
    let body = line.trim_start_matches(is_blank);
    if line.len() - body.len() > 3 {
        return None;
    }
    let body = body.strip_prefix(['-', '*', '•'])?;
    let text = body.trim_start_matches(is_blank);
    (text.len() < body.len()).then(|| text.trim_end())
}

/// The name before the first separator that is followed by one of `words`; its length is within `chars`.
fn name_before<'a>(
    body: &'a str,
    words: &[&str],
    chars: std::ops::RangeInclusive<usize>,
) -> Option<&'a str> {
    for (at, separator) in body.char_indices().filter(|(_, c)| is_separator(*c)) {
        let after = body[at + separator.len_utf8()..].trim_start_matches(is_blank_or_emphasis);
        let declares = words.iter().any(|word| {
            after.strip_prefix(word).is_some_and(|rest| {
                ends_word(rest) || ends_word(rest.trim_start_matches(is_emphasis))
            })
        });
        if declares {
            let name = body[..at].trim();
            let length = name.chars().count();
            if length >= *chars.start() {
                return chars.contains(&length).then_some(name);
            }
        }
    }
    None
}

/// `Final verdict: FAIL` is a summary, not a feature.
fn names_the_verdict(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("verdict"))
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn is_separator(c: char) -> bool {
    matches!(c, '—' | '–' | ':' | '-')
}

fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn is_blank_or_emphasis(c: char) -> bool {
    is_blank(c) || is_emphasis(c)
}

/// Position of an upper-case ASCII word in any case, at or after `from`.
fn find_ignoring_case(text: &str, word: &str, from: usize) -> Option<usize> {
    let word = word.as_bytes();
    text.as_bytes()[from..]
        .windows(word.len())
        .position(|part| part.eq_ignore_ascii_case(word))
        .map(|at| from + at)
}

#[cfg(test)]
mod tests;
