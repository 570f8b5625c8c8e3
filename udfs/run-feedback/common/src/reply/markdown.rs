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
            rest = copy_line(rest, &mut out);
        }
    }
    out
}

/// Copies the first line without its HTML comments; gives what follows it. A comment may go on over lines, and what
/// follows its end is still the same line for the reader.
fn copy_line<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end_of_line = |from: usize| text[from..].find('\n').map_or(text.len(), |end| from + end);
    let (mut at, mut end) = (0, end_of_line(0));
    while let Some(start) = comment_in(&text[at..end]) {
        out.push_str(&text[at..at + start]);
        let inside = at + start + "<!--".len();
        // One that never ends hides all the rest.
        let Some(length) = text[inside..].find("-->") else { return "" };
        at = inside + length + "-->".len();
        if at > end {
            end = end_of_line(at);
        }
    }
    let after = (end + 1).min(text.len());
    out.push_str(&text[at..after]);
    &text[after..]
}

/// The first line without its newline, and what follows it.
fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// Where the first HTML comment starts in a line, if outside inline code. Looks no further than there.
fn comment_in(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'<' if line[at..].starts_with("<!--") => return Some(at),
            b'`' => at = code_at(bytes, at).unwrap_or_else(|opening| opening),
            _ => at += 1,
        }
    }
    None
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

/// Inline code: from a run of backticks to the next run of the same length in the same paragraph. In order.
pub(super) fn code_spans(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut spans, bytes) = (Vec::new(), text.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'`' {
            at += 1;
            continue;
        }
        match code_at(bytes, at) {
            Ok(end) => {
                spans.push(at..end);
                at = end;
            }
            Err(opening) => at = opening,
        }
    }
    spans
}

/// The end of the inline code that a run of backticks opens; where the run ends if it opens none.
fn code_at(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let run = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'`').count();
    let length = run(at);
    let mut probe = at + length;
    while probe < bytes.len() && !is_blank_line_at(bytes, probe) {
        match run(probe) {
            0 => probe += 1,
            same if same == length => return Ok(probe + same),
            other => probe += other,
        }
    }
    Err(at + length)
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
            ("<!--1\n-->\nb", "\nb"),
            ("<!---->a<!--x-->", "a"),
            ("a<!--x-->\n", "a\n"),
            ("`` a <!--b--> ` c", "`` a  ` c"),
            ("é<!--x-->é", "éé"),
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
