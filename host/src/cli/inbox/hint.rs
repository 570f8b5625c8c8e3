//! [`Hints`]: command lines that a person copies into a shell.
//!
//! Ids, options and names of fields come from agents and from other programs. A line is only made here, out of
//! [`Word`]s, so that what comes from data is always quoted, and never run as a command or taken for an option.

use super::super::given::Given;
use super::super::visible;

/// Makes lines that reach what the command that shows them has reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    /// The options of the command line, each behind a blank.
    given: String,
}

/// A word behind the command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Word<'a> {
    /// An argument, from data.
    Text(&'a str),
    /// An option of the command, and its value, from data.
    Option(&'static str, &'a str),
    /// A place for the reader's own words, shown as it stands.
    Blank(&'static str),
}

impl Hints {
    /// Lines that repeat these options, but for those that only say what is printed.
    pub(super) fn new(given: &[Given]) -> Self {
        let one = |given: &Given| match (given.name.as_str(), &given.value) {
            ("--json" | "--project", _) => String::new(),
            // A secret stays where it is.
            ("--token", _) => " --token 'its token'".to_owned(),
            (name, Some(value)) => option(name, value),
            (name, None) => format!(" {name}"),
        };
        Self { given: given.iter().map(one).collect() }
    }

    /// `udf-host inbox COMMAND WORDS…`.
    pub(super) fn line(&self, command: &'static str, words: &[Word<'_>]) -> String {
        let (mut options, mut arguments) = (String::new(), String::new());
        for word in words {
            match *word {
                Word::Text(text) => arguments.push_str(&format!(" {}", shell(text))),
                Word::Blank(text) => arguments.push_str(&format!(" {text}")),
                Word::Option(name, value) => options.push_str(&option(name, value)),
            }
        }
        let dashed = |word: &Word<'_>| matches!(word, Word::Text(text) if text.starts_with('-'));
        let words = match words.iter().any(dashed) {
            true => format!("{options} --{arguments}"),
            false => format!("{arguments}{options}"),
        };
        format!("udf-host inbox{} {command}{words}", self.given)
    }
}

/// Behind a line: the number of a choice, and what people read for it.
pub(super) fn remark(number: usize, label: Option<&str>) -> String {
    // Quoted as well: not every shell that people type into knows comments.
    let label = label.map(|label| format!(" {}", shell(label))).unwrap_or_default();
    format!("      # {number}.{label}")
}

fn option(name: &str, value: &str) -> String {
    // In two words, such a value would be taken for an option.
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" {name}{between}{}", shell(value))
}

/// A word as a shell takes it.
pub(super) fn shell(word: &str) -> String {
    if word.contains(visible::is_hidden) {
        return escaped(word);
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('-') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same for a word with characters that nobody can copy: `$'…'`, with the bytes of those in octal.
fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for c in word.chars() {
        if visible::is_hidden(c) || matches!(c, '\'' | '\\' | '!') {
            let mut bytes = [0; 4];
            out.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")));
        } else {
            out.push(c);
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        for word in [
            "",
            "card_1",
            "-x",
            "$(touch /tmp/x)",
            "a; b # c",
            "it's",
            "`a` \"$HOME\" *",
            "!x",
            "~",
            "a\nb",
            "\u{1b}[31m'1' \\ !\t$HOME",
            "\u{202e}7",
            "日本 é",
        ] {
            let quoted = shell(word);
            assert!(!quoted.contains(visible::is_hidden), "{quoted:?}");
            let script = format!("printf '<%s>' {quoted}");
            let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("<{word}>"), "{quoted}");
        }
    }

    #[test]
    fn what_begins_like_an_option_is_none() {
        let hints = Hints::default();
        for (words, want) in [
            (&[Word::Text("a"), Word::Option("--action", "b c")][..], " a --action 'b c'"),
            (&[Word::Text("a"), Word::Text("--help")], " -- a '--help'"),
            (&[Word::Text("a"), Word::Option("--action", "-x")], " a --action='-x'"),
            (
                &[Word::Text("-a"), Word::Option("--action", "b"), Word::Blank("'your text'")],
                " --action b -- '-a' 'your text'",
            ),
            (&[Word::Text("a\nb"), Word::Blank("…")], " $'a\\012b' …"),
        ] {
            assert_eq!(hints.line("answer", words), format!("udf-host inbox answer{want}"));
        }
        assert_eq!(remark(2, None), "      # 2.");
        assert_eq!(remark(2, Some("$(x)")), "      # 2. '$(x)'");
    }

    #[test]
    fn options_of_the_command_line_are_repeated() {
        let given = [
            ("--app-dir", Some("my app")),
            ("--no-build", None),
            ("--token", Some("secret")),
            ("--json", None),
            ("--project", Some("atlas")),
            ("--udfs", Some("-x")),
        ];
        let given = given
            .map(|(name, value)| Given { name: name.to_owned(), value: value.map(str::to_owned) });
        assert_eq!(
            Hints::new(&given).line("dismiss", &[Word::Text("c")]),
            "udf-host inbox --app-dir 'my app' --no-build --token 'its token' --udfs='-x' dismiss c"
        );
    }
}
