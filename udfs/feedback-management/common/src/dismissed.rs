use std::collections::HashSet;

use sdk::prelude::*;

/// The feedback keys a human has waved away: exact texts, compared case by case.
/// A stored value that is not a list dismisses nothing, so that no prompt is hidden by a damaged file.
#[derive(Debug, Default)]
pub struct Dismissed(HashSet<String>);

impl Dismissed {
    /// Reads the keys without a lock.
    ///
    /// # Errors
    /// The operation does not declare that it reads `dismissedFeedbackKeys`.
    pub fn read(ctx: &Context) -> Result<Self, UdfError> {
        Ok(Self::of(&ctx.read("dismissedFeedbackKeys")?.records()))
    }

    /// The non-empty texts among these members of the list.
    pub fn of(members: &[Record]) -> Self {
        let texts = members.iter().filter_map(|key| key.json().as_str_exact().map(Into::into));
        Self(texts.filter(|key: &String| !key.is_empty()).collect())
    }

    /// Whether this key was dismissed. The empty text never is.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    /// Whether the record's own `id` was dismissed; an id that is not a text never is.
    pub fn hides(&self, record: &Record) -> bool {
        record.str("id").is_some_and(|id| self.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_dismiss() {
        let members = [r#""cmt_1""#, r#""""#, "7", "null", r#"{"id":"cmt_2"}"#, r#""7""#];
        let members = members.map(|text| Record::parse(text).unwrap());
        let dismissed = Dismissed::of(&members);
        for (key, want) in
            [("cmt_1", true), ("CMT_1", false), ("", false), ("7", true), ("cmt_2", false)]
        {
            assert_eq!(dismissed.contains(key), want, "{key:?}");
        }
        let record = |text: &str| Record::parse(text).unwrap();
        assert!(dismissed.hides(&record(r#"{"id":"cmt_1"}"#)));
        assert!(!dismissed.hides(&record(r#"{"id":7}"#)) && !dismissed.hides(&record("{}")));
    }
}
