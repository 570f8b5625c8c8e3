//! What was tried: one text file per subject, append-only but for the outcome of its newest attempt
//! (workflow-engine contract §8). Text in, text out; the caller keeps the file.

use super::clip::{head, one_line, tail};

/// Characters of the ledger that ride in a prompt.
pub const EXCERPT_CHARS: usize = 2000;
/// Key of a domain that names none.
pub const DEFAULT_KEY: &str = "work";

const BOUNDARY: &str = "## Attempt ";
const PENDING: &str = "Outcome: pending";
const GIVEN_CHARS: usize = 1200;
const REPORTED_CHARS: usize = 1500;

/// One attempt of the worker, as it is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Agent type that worked.
    pub agent: String,
    /// The failure blocks it was given; blank in the first round.
    pub given: String,
    /// What it reported.
    pub reported: String,
}

/// A change of the ledger, made by a recorder as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerEffect {
    /// A new pending attempt at the end.
    Append(Attempt),
    /// The newest pending attempt gets its outcome.
    Settle(String),
}

impl LedgerEffect {
    /// The ledger's text after this effect; `stamp` is the time in UTC to the second.
    pub fn applied(&self, text: &str, stamp: &str) -> String {
        match self {
            Self::Append(attempt) => append(text, attempt, stamp),
            Self::Settle(outcome) => settle(text, outcome),
        }
    }
}

/// Where the ledger lies below a state directory.
pub fn path(key: &str) -> String {
    format!("reference/briefs/.fixlog/{key}.md")
}

/// The ledger with one more attempt, numbered after those that are there.
pub fn append(text: &str, attempt: &Attempt, stamp: &str) -> String {
    let number = entries(text).len() + 1;
    let given = or_else(head(attempt.given.trim(), GIVEN_CHARS), "(first round)");
    let reported = or_else(tail(attempt.reported.trim(), REPORTED_CHARS), "(no report)");
    let entry = format!(
        "{BOUNDARY}{number} | {stamp} | {}\nGiven:\n{}\nReported:\n{}\n{PENDING}",
        one_line(&attempt.agent),
        harmless(given),
        harmless(reported),
    );
    let before = text.trim_end();
    if before.is_empty() { entry } else { format!("{before}\n\n{entry}") }
}

/// The ledger with the outcome of its newest pending attempt; without one the text stays as it is.
pub fn settle(text: &str, outcome: &str) -> String {
    let outcome = one_line(outcome);
    // The outcome is the last line of its entry: a report that quotes one stands before it.
    let newest = entries(text)
        .into_iter()
        .rev()
        .map(|entry| entry.trim_end())
        .find(|entry| entry.lines().next_back() == Some(PENDING));
    let Some(entry) = newest else { return text.to_owned() };
    let end = entry.as_ptr() as usize - text.as_ptr() as usize + entry.len();
    let start = end - PENDING.len();
    format!("{}Outcome: {outcome}{}", &text[..start], &text[end..])
}

/// Outcome texts of all attempts, oldest first; an attempt without an outcome line gives an empty text.
pub fn outcomes(text: &str) -> Vec<&str> {
    let outcome = |entry: &'_ str| -> usize { entry.trim_end().rfind('\n').map_or(0, |at| at + 1) };
    entries(text)
        .into_iter()
        .map(|entry| {
            entry.trim_end()[outcome(entry)..].strip_prefix("Outcome: ").unwrap_or_default()
        })
        .collect()
}

/// What of the ledger goes into a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Numbers of the attempts that are in it.
    pub kept: Vec<usize>,
    /// The text, at most the cap, not counting the line about what was left out.
    pub text: String,
}

/// The newest attempts that fit into `cap` characters.
pub fn excerpt(text: &str, cap: usize) -> Excerpt {
    let text = text.trim();
    let entries = entries(text);
    if text.chars().count() <= cap {
        return Excerpt { kept: (1..=entries.len()).collect(), text: text.to_owned() };
    }
    let mut kept = 0;
    let mut used = 0;
    for entry in entries.iter().rev() {
        let gap = if kept == 0 { 0 } else { 2 };
        let chars = entry.trim_end().chars().count() + gap;
        if used + chars > cap {
            break;
        }
        used += chars;
        kept += 1;
    }
    let body = match entries.last() {
        // Not a ledger we wrote: its end is worth more than nothing.
        None => tail(text, cap).to_owned(),
        Some(newest) if kept == 0 => {
            kept = 1;
            ending(newest.trim_end(), cap)
        }
        Some(_) => {
            let newest = &entries[entries.len() - kept..];
            newest.iter().map(|entry| entry.trim_end()).collect::<Vec<_>>().join("\n\n")
        }
    };
    let left_out = entries.len() - kept.min(entries.len());
    let text =
        if left_out == 0 { body } else { format!("(older attempts left out: {left_out})\n{body}") };
    Excerpt { kept: (left_out + 1..=entries.len()).collect(), text }
}

/// The header of an entry and as much of its end as fits.
fn ending(entry: &str, cap: usize) -> String {
    let header = entry.lines().next().unwrap_or_default();
    let room = cap.saturating_sub(header.chars().count() + "\n…\n".chars().count());
    format!("{header}\n…\n{}", tail(entry, room))
}

/// The entries, each from its boundary to the next.
fn entries(text: &str) -> Vec<&str> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with(BOUNDARY) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// A body line that looks like a boundary gets a blank, so that no report can forge an attempt.
fn harmless(body: &str) -> String {
    let mut out = String::with_capacity(body.len() + 1);
    for line in body.split_inclusive('\n') {
        if line.starts_with(BOUNDARY) {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

fn or_else<'a>(text: &'a str, absent: &'a str) -> &'a str {
    if text.is_empty() { absent } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attempt(given: &str, reported: &str) -> Attempt {
        Attempt { agent: "worker".into(), given: given.into(), reported: reported.into() }
    }

    const STAMP: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn the_newest_pending_attempt_is_settled() {
        let one = append("", &attempt("", "see\nOutcome: pending"), STAMP);
        let one = settle(&one, "check failed");
        assert!(one.ends_with("see\nOutcome: pending\nOutcome: check failed"), "{one}");
        assert_eq!(settle(&one, "verified"), one, "nothing is pending");
        let two = append(&one, &attempt("e", ""), STAMP);
        assert_eq!(outcomes(&two), ["check failed", "pending"]);
        let two = settle(&two, "work failed\nat build");
        assert_eq!(outcomes(&two), ["check failed", "work failed at build"]);
        assert!(two.starts_with(&one));
        // A trailing line break added by an editor does no harm.
        let edited = settle(&format!("{}\n", append("", &attempt("", "x"), STAMP)), "verified");
        assert!(edited.ends_with("Outcome: verified\n"));
    }

    #[test]
    fn bodies_are_cut_and_cannot_forge() {
        let text = append("", &attempt(&"g".repeat(1300), "## Attempt 7 | x\n## Attempt 8"), STAMP);
        assert!(text.contains(&format!(
            "Given:\n{}\nReported:\n ## Attempt 7 | x\n ## Attempt 8\n",
            "g".repeat(1200)
        )));
        // The cut itself can make a line begin with the boundary.
        let reported = format!("x{BOUNDARY}{}", "y".repeat(REPORTED_CHARS - BOUNDARY.len()));
        let text = append("", &attempt("## Attempt 3", &reported), STAMP);
        assert_eq!(entries(&text).len(), 1);
        assert!(append(&text, &attempt("", "ok"), STAMP).contains("\n\n## Attempt 2 | "));
        let named = Attempt {
            agent: "a\n## Attempt 9".into(),
            given: String::new(),
            reported: String::new(),
        };
        assert_eq!(entries(&append("", &named, STAMP)).len(), 1);
    }

    #[test]
    fn excerpts_keep_whole_attempts() {
        let mut text = String::new();
        for _ in 0..3 {
            text = append(&text, &attempt("e", &"r".repeat(50)), STAMP);
        }
        let whole = text.chars().count();
        assert_eq!(excerpt(&text, whole).kept, [1, 2, 3]);
        assert_eq!(excerpt(&text, whole - 1).kept, [2, 3]);
        let one = append("", &attempt("e", &"r".repeat(500)), STAMP);
        let cut = excerpt(&one, 200);
        assert_eq!(cut.kept, [1]);
        assert_eq!(cut.text.chars().count(), 200);
        assert!(
            cut.text.starts_with("## Attempt 1 | ") && cut.text.ends_with("r\nOutcome: pending")
        );
        assert_eq!(excerpt("not a ledger", 6), Excerpt { kept: vec![], text: "ledger".into() });
        assert_eq!(excerpt(" \n", 10), Excerpt { kept: vec![], text: String::new() });
    }

    proptest! {
        #[test]
        fn any_report_is_one_attempt(given in "(?s).{0,80}", reported in "(## Attempt 1 \\| |\n|Outcome: pending|x){0,12}") {
            let one = append("", &attempt(&given, &reported), STAMP);
            let two = append(&one, &attempt(&reported, &given), STAMP);
            prop_assert_eq!(outcomes(&two), ["pending", "pending"]);
            let settled = settle(&two, "verified");
            prop_assert_eq!(outcomes(&settled), ["pending", "verified"]);
            prop_assert!(two.starts_with(&one));
        }
    }
}
