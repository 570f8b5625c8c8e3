//! One top-level field of a record, without looking at the others.

use crate::{Json, quote};

/// Finds a top-level field in the text of a record as a file has it: what [`render`](crate::render)
/// writes in [`Layout::Pretty`](crate::Layout) at level 1. The form gives the field away: a line with
/// exactly four blanks, then the key. Strings hold no line breaks, deeper members stand further right,
/// and keys are unique.
#[derive(Debug, Clone)]
pub struct FieldPattern(String);

impl FieldPattern {
    /// The pattern of this field.
    pub fn new(field: &str) -> Self {
        let mut pattern = String::from("\n    ");
        quote(field, &mut pattern);
        pattern.push_str(": ");
        Self(pattern)
    }

    /// The field's value; `None` if the record has no such field or is no object. For a text in
    /// another form the answer is unspecified.
    pub fn find<'a>(&self, record: &'a str) -> Option<Json<'a>> {
        if !record.starts_with('{') {
            return None;
        }
        let at = memchr::memmem::find(record.as_bytes(), self.0.as_bytes())?;
        Some(Json::leading(&record[at + self.0.len()..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Specials, render};

    #[test]
    fn finds_what_a_look_at_all_fields_finds() {
        let text = r#"{"a":{"b":[{"b":1}],"x":"\n    \"b\": 2"},"b":" ","":0,"q\"":[],"c":{}}"#;
        let mut record = String::new();
        render(text, Layout::Pretty { level: 1 }, Specials::Refuse, &mut record).unwrap();
        for field in ["a", "b", "x", "", "q\"", "c", "missing"] {
            assert_eq!(
                FieldPattern::new(field).find(&record),
                Json::trusted(&record).get(field),
                "{field}"
            );
        }
        for other in ["[\n    \"b\"\n  ]", "7", "null"] {
            assert_eq!(FieldPattern::new("b").find(other), None);
        }
    }
}
