//! What somebody says in a comment: the text without quotes, code blocks and HTML comments (§16, rule 2).

/// The text without fenced blocks, quoted lines and HTML comments. Inline code stays: it may be part of an answer.
pub(super) fn spoken(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut fence: Option<Fence> = None;
    let mut rest = body;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        if let Some(open) = &fence {
            if open.is_closed_by(line) {
                fence = None;
            }
            rest = after;
        } else if let Some(open) = Fence::opened_by(line) {
            fence = Some(open);
            rest = after;
        } else if line.trim_start().starts_with('>') {
            rest = after;
        } else {
            // A comment may go on over lines; what follows its end is still the same line for the reader.
            match comment_in(line) {
                None => {
                    out.push_str(&rest[..rest.len() - after.len()]);
                    rest = after;
                }
                Some(start) => {
                    out.push_str(&line[..start]);
                    rest = after_comment(&rest[start..]);
                    rest = finish_line(rest, &mut out);
                }
            }
        }
    }
    out
}

/// Copies the rest of a line behind a comment, further comments taken out; gives what follows the line.
fn finish_line<'a>(mut rest: &'a str, out: &mut String) -> &'a str {
    loop {
        let (line, after) = split_line(rest);
        match comment_in(line) {
            None => {
                out.push_str(&rest[..rest.len() - after.len()]);
                return after;
            }
            Some(start) => {
                out.push_str(&line[..start]);
                rest = after_comment(&rest[start..]);
            }
        }
    }
}

/// The first line without its newline, and what follows it.
fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// Where an HTML comment starts in a line, if outside inline code.
fn comment_in(line: &str) -> Option<usize> {
    let spans = code_spans(line);
    line.match_indices("<!--")
        .map(|(at, _)| at)
        .find(|at| !spans.iter().any(|span| span.contains(at)))
}

/// What follows the comment that `text` starts with; one that never ends hides all the rest.
fn after_comment(text: &str) -> &str {
    text["<!--".len()..].split_once("-->").map_or("", |(_, rest)| rest)
}

/// An open fenced block.
struct Fence {
    mark: u8,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Fence> {
        let (mark, length, rest) = Fence::run(line)?;
        // Backticks in the info string make it inline code: ```x``` on one line is no fence.
        (mark != b'`' || !rest.contains('`')).then_some(Fence { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        Fence::run(line).is_some_and(|(mark, length, rest)| {
            mark == self.mark && length >= self.length && rest.trim().is_empty()
        })
    }

    /// At most three blanks, then at least three equal marks.
    fn run(line: &str) -> Option<(u8, usize, &str)> {
        let text = line.trim_start_matches(' ');
        let mark = *text.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = text.bytes().take_while(|byte| *byte == mark).count();
        (line.len() - text.len() <= 3 && length >= 3).then(|| (mark, length, &text[length..]))
    }
}

/// Inline code: from a run of backticks to the next run of the same length in the same paragraph.
pub(super) fn code_spans(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    let bytes = text.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'`').count();
    let mut at = 0;
    while at < bytes.len() {
        let length = run(at);
        if length == 0 {
            at += 1;
            continue;
        }
        let mut probe = at + length;
        let end = loop {
            if probe >= bytes.len() || is_blank_line_at(bytes, probe) {
                break None;
            }
            match run(probe) {
                0 => probe += 1,
                same if same == length => break Some(probe + same),
                other => probe += other,
            }
        };
        match end {
            Some(end) => {
                spans.push(at..end);
                at = end;
            }
            None => at += length,
        }
    }
    spans
}

/// Whether a paragraph ends at this newline.
fn is_blank_line_at(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b'\n'
        && bytes[at + 1..]
            .iter()
            .find(|byte| !matches!(byte, b' ' | b'\t'))
            .is_none_or(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_stays() {
        for (body, want) in [
            ("approve", "approve"),
            ("a\n```\nb\n```\nc", "a\nc"),
            ("a\n```rust\nb\n~~~\n```\nc", "a\nc"),
            ("a\n~~~~\nb\n~~~\n~~~~~  \nc\n", "a\nc\n"),
            ("a\n````\n```\nb\n````\nc", "a\nc"),
            ("a\n```\nb", "a\n"),
            ("```x``` y\nz", "```x``` y\nz"),
            ("    ```\nx", "    ```\nx"),
            ("> reject\n\napprove", "\napprove"),
            ("  > reject\n>> x\nok", "ok"),
            ("> ```\nok", "ok"),
            ("```\n> x\n```\nok", "ok"),
            ("<!-- reject -->approve", "approve"),
            ("a <!-- b\n\n```\nc --> d\ne", "a  d\ne"),
            ("a<!--1--><!--2-->b<!--3\n4-->c\nd", "abc\nd"),
            ("a <!-- never ends\nb", "a "),
            ("`<!--` x `-->` y", "`<!--` x `-->` y"),
            ("```\n<!--\n```\nok", "ok"),
            ("<!--\n> x\n-->\nok", "\nok"),
        ] {
            assert_eq!(spoken(body), want, "{body:?}");
        }
    }

    #[test]
    fn code_spans_pair_runs_of_one_length() {
        for (text, want) in [
            ("a `b` c", &["2..5"][..]),
            ("``a`b`` `", &["0..7"]),
            ("`a", &[]),
            ("`a\nb`", &["0..5"]),
            ("`a\n\nb`", &[]),
            ("`a\n \nb`", &[]),
            ("é`x`", &["2..5"]),
        ] {
            let spans: Vec<String> =
                code_spans(text).iter().map(|span| format!("{span:?}")).collect();
            assert_eq!(spans, want, "{text:?}");
        }
    }
}
