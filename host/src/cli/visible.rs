//! What others wrote, as it may stand on a terminal.
//!
//! Agents write summaries, titles and payloads. None of that may move the cursor, recolour the screen, hide a tail or
//! turn a line around: every such character is shown as a visible mark instead, so that nothing disappears either.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// A text as one line: line breaks and tabs are marks too.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // U+2400 and on are pictures of the control characters, in their order.
            '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('\u{2421}'),
            c if is_hidden(c) => {
                // Writing to a `String` does not fail.
                let _infallible = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A text of several lines, each as [`line`] shows it; a tab becomes four blanks.
pub(super) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.split('\n').map(|part| {
        let part = part.strip_suffix('\r').unwrap_or(part);
        line(&part.replace('\t', "    ")).into_owned()
    })
}

/// The columns of a terminal that a text takes: letters of East Asia and most pictures take two, marks upon a letter none.
pub(super) fn width(shown: &str) -> usize {
    shown.chars().map(columns).sum()
}

fn columns(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// A text as one line of at most `limit` columns; what was cut off leaves a `…`.
pub(super) fn cut(text: &str, limit: usize) -> String {
    cut_end(&line(text.trim()), limit)
}

/// The same for a text that is shown as it stands.
pub(super) fn cut_end(shown: &str, limit: usize) -> String {
    let (mut taken, mut kept) = (0, String::new());
    for (count, c) in shown.chars().enumerate() {
        taken += columns(c);
        // A letter may bear a few marks, not thousands.
        if taken > limit || count >= 4 * limit {
            return format!("{}…", kept.trim_end());
        }
        if taken < limit {
            kept.push(c);
        }
    }
    shown.to_owned()
}

/// JSON with the same meaning in which such characters are escapes. They can only stand inside strings.
pub(super) fn json(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal acts on it, or shows nothing where it stands.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Change the direction of what stands beside them.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Have no width.
            | '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Fillers, which look like blanks.
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            // End a line for some programs.
            | '\u{2028}' | '\u{2029}'
            // A second alphabet that nobody sees.
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_becomes_a_mark() {
        for (text, want) in [
            ("", ""),
            ("plain – Größe 🧪 日本", "plain – Größe 🧪 日本"),
            ("a\nb\r\n\tc", "a␊b␍␊␉c"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("\0\u{8}\u{7f}", "␀␈␡"),
            ("\u{9b}2J\u{85}", "<U+009B>2J<U+0085>"),
            ("\u{202e}txt.exe\u{202c}", "<U+202E>txt.exe<U+202C>"),
            ("\u{2066}a\u{2069}\u{200f}\u{61c}", "<U+2066>a<U+2069><U+200F><U+061C>"),
            ("ap\u{200b}prove\u{feff}\u{ad}", "ap<U+200B>prove<U+FEFF><U+00AD>"),
            ("a\u{2028}b", "a<U+2028>b"),
            ("x\u{e0041}", "x<U+E0041>"),
        ] {
            assert_eq!(line(text), want, "{text:?}");
            assert!(!line(text).contains(is_hidden), "{text:?}");
        }
    }

    #[test]
    fn several_lines_stay_lines() {
        let shown: Vec<String> = lines("a\r\n\tb\u{1b}c\n\nd\re").collect();
        assert_eq!(shown, ["a", "    b␛c", "", "d␍e"]);
    }

    #[test]
    fn a_cut_shows_that_it_is_one() {
        for (text, want) in [
            ("abcde", "abcde"),
            ("abcdef", "abcd…"),
            ("  abc  ", "abc"),
            ("äöü ßx", "äöü…"),
            ("\u{1b}bcdef", "␛bcd…"),
            // Two columns each, and none for a mark upon a letter.
            ("日本", "日本"),
            ("日本語", "日本…"),
            ("🧪🧪 x", "🧪🧪…"),
            (&"\u{301}".repeat(99), &("\u{301}".repeat(20) + "…")),
            ("e\u{301}e\u{301}e\u{301}ee", "e\u{301}e\u{301}e\u{301}ee"),
        ] {
            assert_eq!(cut(text, 5), want, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        for text in [
            "{\n\t\"a\": \"b\"}",
            "\"\u{7f}\u{9b}\u{202e}\u{e0041}é\u{1f9ea}\"",
            "[\"\\u001b\", 1.50]",
        ] {
            let out = json(text);
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(parsed(&out), parsed(text), "{text:?}");
            assert!(!out.replace(['\n', '\t'], "").contains(is_hidden), "{out}");
        }
        assert_eq!(json("\"\u{9b}\u{e0041}\""), "\"\\u009b\\udb40\\udc41\"");
    }
}
