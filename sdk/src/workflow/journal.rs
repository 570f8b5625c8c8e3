//! The journal of a subject: one JSON object per line, evidence only (workflow-engine contract §8).
//! State is never rebuilt from it, and a torn line costs that line alone.

use serde_json::{Map, Value};

use super::moment::Moment;

/// Where the journal lies below a state directory.
pub const PATH: &str = "logs/workflow_journal.jsonl";

/// One event, without its time.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    event: &'static str,
    fields: Vec<(&'static str, Value)>,
}

impl JournalLine {
    /// An event without fields yet.
    pub fn new(event: &'static str) -> Self {
        Self { event, fields: Vec::new() }
    }

    /// The same event with one more field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// A turn that ended before its step was taken, seen at the next start.
    pub fn interrupted(stage: &str) -> Self {
        Self::new("interrupted").with("stage", stage)
    }

    /// Name of the event.
    pub fn event(&self) -> &'static str {
        self.event
    }

    /// The line as data, without its time.
    pub fn to_value(&self) -> Value {
        let fields = self.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let map: Map<_, _> =
            [("event".to_owned(), Value::from(self.event))].into_iter().chain(fields).collect();
        Value::Object(map)
    }

    /// Adds the line with its line feed to `out`.
    pub fn render(&self, at: Moment, out: &mut String) {
        out.push_str("{\"ts\":");
        out.push_str(&at.seconds());
        out.push_str(",\"event\":\"");
        out.push_str(self.event);
        out.push('"');
        for (name, value) in &self.fields {
            out.push_str(",\"");
            out.push_str(name);
            out.push_str("\":");
            out.push_str(&value.to_string());
        }
        out.push_str("}\n");
    }
}

/// What one write appends: all lines, behind a line feed of their own when the file ends in a torn line.
///
/// `last_byte` is the last byte of the file, `None` if it is empty or missing.
pub fn appendix(lines: &[JournalLine], at: Moment, last_byte: Option<u8>) -> String {
    let mut out = String::new();
    if lines.is_empty() {
        return out;
    }
    if last_byte.is_some_and(|byte| byte != b'\n') {
        out.push('\n');
    }
    for line in lines {
        line.render(at, &mut out);
    }
    out
}

/// The lines of a journal; whatever is not a JSON object (a torn tail, zero bytes) is skipped.
pub fn read(bytes: &[u8]) -> Vec<Map<String, Value>> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines() -> Vec<JournalLine> {
        vec![
            JournalLine::new("work_outcome")
                .with("ok", false)
                .with("step", "a \"b\"\n")
                .with("rounds", 2),
            JournalLine::interrupted("check"),
            JournalLine::new("state_reset"),
        ]
    }

    #[test]
    fn lines_are_read_back() {
        let text = appendix(&lines(), Moment(1_767_225_600_040), None);
        let first = "{\"ts\":1767225600.040,\"event\":\"work_outcome\",\"ok\":false,\"step\":\"a \\\"b\\\"\\n\",\"rounds\":2}\n";
        assert!(text.starts_with(first), "{text}");
        let mut read = read(text.as_bytes());
        assert_eq!(read.len(), 3);
        for (map, line) in read.iter_mut().zip(lines()) {
            assert!(map.shift_remove("ts").is_some());
            assert_eq!(Value::Object(map.clone()), line.to_value());
        }
        assert_eq!(appendix(&[], Moment(0), Some(b'x')), "");
    }

    #[test]
    fn junk_is_skipped() {
        assert_eq!(read(b"\0\0\0\n[1]\nnull\n{\"a\":1}\n\xff{}\n{\"b\":").len(), 1);
    }

    proptest! {
        /// Whatever tail a crash left, the lines before it and those appended after it are whole.
        #[test]
        fn a_torn_line_costs_itself_alone(cut in 0usize..400) {
            let mut file = appendix(&lines(), Moment(5), None).into_bytes();
            let whole = file.len();
            file.truncate(cut.min(whole));
            let before = file.iter().filter(|byte| **byte == b'\n').count();
            let more = appendix(&lines(), Moment(6), file.last().copied());
            file.extend_from_slice(more.as_bytes());
            let after = read(&file).len();
            prop_assert!(after == before + 3 || after == before + 4, "{} {}", before, after);
        }
    }
}
