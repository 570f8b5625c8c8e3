use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use json_text::{FieldPattern, Json as JsonRef, Layout, Specials};

use crate::error::UdfError;
use crate::json::{JsonText, Object, ToJson, canonical};
use crate::wire::Texts;

/// One entry of a collection or a log: a JSON value as text, looked into without parsing what is not
/// asked for. Cheap to clone; records of one read share their buffer.
#[derive(Clone)]
pub struct Record {
    buffer: Arc<str>,
    start: u32,
    end: u32,
    pub(crate) place: Option<Place>,
}

/// Where a record stands: needed to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) snapshot: u32,
    pub(crate) position: u32,
}

impl Record {
    /// A record of one's own, for tests and replies. It is written in the store's form.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn parse(text: &str) -> Result<Self, json_text::ParseError> {
        canonical(text, Specials::Refuse).map(Self::of_text)
    }

    pub(crate) fn of_text(text: String) -> Self {
        // Records are far below 4 GiB: a whole frame is.
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        Self { buffer: text.into(), start: 0, end, place: None }
    }

    /// The records of a frame, sharing one copy of its text.
    pub(crate) fn of_texts(texts: &Texts<'_>) -> Vec<Self> {
        let buffer: Arc<str> = texts.joined().into();
        texts
            .spans()
            .map(|(start, end)| Self { buffer: buffer.clone(), start, end, place: None })
            .collect()
    }

    pub(crate) fn at(self, snapshot: u32, position: u32) -> Self {
        Self { place: Some(Place { snapshot, position }), ..self }
    }

    /// Where it stands in its collection, from 0; 0 also for a record that is of none.
    pub fn position(&self) -> u32 {
        self.place.map_or(0, |place| place.position)
    }

    /// The JSON text, in the form it has in the collection's file.
    pub fn text(&self) -> &str {
        &self.buffer[self.start as usize..self.end as usize]
    }

    /// A look into it.
    pub fn json(&self) -> JsonRef<'_> {
        JsonRef::trusted(self.text())
    }

    /// Whether it is an object. Collections may hold other values, which every operation passes over.
    pub fn is_object(&self) -> bool {
        self.json().is_object()
    }

    /// The value of a top-level field.
    pub fn get(&self, field: &str) -> Option<JsonRef<'_>> {
        match self.place {
            // From the store, so in the form of a file, which gives a field away.
            Some(_) => FieldPattern::new(field).find(self.text()),
            None => self.json().get(field),
        }
    }

    /// The value of a top-level field that is a string. A lone surrogate in it shows as U+FFFD.
    pub fn str(&self, field: &str) -> Option<Cow<'_, str>> {
        self.get(field)?.as_str()
    }

    /// Whether a top-level field is a string and equal to `value`. An absent field and a number equal
    /// nothing (the app-store contract §8).
    pub fn is(&self, field: &str, value: &str) -> bool {
        self.get(field).is_some_and(|found| found.eq_str(value))
    }

    /// A copy to change: fields that are set keep their position, new ones come last, all others stay
    /// as they are.
    pub fn edit(&self) -> ObjectEdit {
        ObjectEdit { object: Object::of_text(self.text()) }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// By text: two records are equal when they stand the same in a file.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Record {}

/// A record being changed; [`Record::edit`] begins one, `CollectionMut::update` puts it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEdit {
    object: Object,
}

impl ObjectEdit {
    /// Sets a field.
    #[must_use]
    pub fn set(mut self, field: &str, value: impl ToJson) -> Self {
        self.object.insert(field, value);
        self
    }

    /// Sets a field to a JSON value as it stands.
    #[must_use]
    pub fn set_json(self, field: &str, value: impl Into<JsonText>) -> Self {
        self.set(field, value.into())
    }

    /// Sets a field to `null`.
    #[must_use]
    pub fn set_null(self, field: &str) -> Self {
        self.set(field, None::<bool>)
    }

    /// Drops a field.
    #[must_use]
    pub fn remove(mut self, field: &str) -> Self {
        self.object.remove(field);
        self
    }

    /// Keeps only the fields with such names.
    pub(crate) fn retain(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.object.retain(keep);
        self
    }

    /// The changed record on its own, for a reply that is not stored. Records as deep as a file takes may stand
    /// inside it.
    ///
    /// # Errors
    /// A value that was set is not JSON, or the record is more than twice as deep as a file takes.
    pub fn into_record(self) -> Result<Record, UdfError> {
        let (text, layout) = (JsonText::from(self), Layout::Pretty { level: 1 });
        let mut out = String::with_capacity(text.as_str().len());
        json_text::render_joined(text.as_str(), layout, Specials::Accept, &mut out)?;
        Ok(Record::of_text(out))
    }
}

impl From<ObjectEdit> for JsonText {
    fn from(edit: ObjectEdit) -> Self {
        edit.object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Record {
        Record::parse(
            r#"{"id":"card_1","n":7,"payload":{"id":"inner"},"note":"\ud800","id2":null}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_record_of_very_many_fields_can_be_edited() {
        let fields: Vec<String> = (0..200_000).map(|at| format!("\"k{at}\":{at}")).collect();
        let record = Record::parse(&format!("{{{}}}", fields.join(","))).unwrap();
        let edited = record.edit().set("k7", "x").into_record().unwrap();
        assert_eq!(edited.json().fields().count(), 200_000);
        assert_eq!(edited.str("k7").as_deref(), Some("x"));
        assert_eq!(edited.get("k199999").unwrap().as_i64(), Some(199_999));
    }

    #[test]
    fn fields_are_those_of_the_top_level() {
        let card = card();
        assert_eq!(card.str("id").as_deref(), Some("card_1"));
        assert_eq!(card.str("n"), None, "a number is no string");
        assert_eq!(card.get("payload").unwrap().get("id").unwrap().text(), r#""inner""#);
        assert!(card.is("id", "card_1") && !card.is("id", "inner") && !card.is("n", "7"));
        assert!(!card.is("missing", "") && !card.is("note", "\u{fffd}"));
        assert!(card.is_object() && !Record::parse("[1]").unwrap().is_object());
    }

    #[test]
    fn an_edit_keeps_places_and_untouched_values() {
        let edited =
            card().edit().set("n", 8).set("new", true).remove("id2").into_record().unwrap();
        let want = Record::parse(
            r#"{"id":"card_1","n":8,"payload":{"id":"inner"},"note":"\ud800","new":true}"#,
        )
        .unwrap();
        assert_eq!(edited, want);
    }

    #[test]
    fn records_as_deep_as_a_file_takes_can_be_shown_inside_another() {
        let deepest = "[".repeat(1023) + &"]".repeat(1023);
        let run = Record::parse(&deepest).unwrap();
        let task = card().edit().set("runs", vec![run]).into_record().unwrap();
        assert_eq!(task.get("runs").unwrap().items().count(), 1);
        assert_eq!(
            JsonText::parse(task.text()).unwrap_err().reason(),
            "nested deeper than 1024 levels"
        );
    }

    #[test]
    fn text_is_that_of_a_file_at_level_one() {
        assert_eq!(Record::parse(r#"{"a":[]}"#).unwrap().text(), "{\n    \"a\": []\n  }");
    }
}
