use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use json_text::{Json as JsonRef, Layout, ParseError, Specials};
use serde::Serialize;

use crate::record::Record;
use crate::time::Timestamp;

/// A checked JSON text, kept exactly as it was given: integers of any size, deep nesting, key order
/// and lone surrogates survive. As a parameter type it takes any JSON value; `""` is `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Checks a text. `NaN`, `Infinity` and numbers beyond a double are refused (the app-store
    /// contract §11, S16).
    ///
    /// # Errors
    /// The text is not exactly one JSON value; the error says what was expected where.
    pub fn parse(text: impl Into<String>) -> Result<Self, ParseError> {
        let text = text.into();
        json_text::check(&text, Specials::Refuse)?;
        Ok(Self(text))
    }

    /// The JSON text of any value.
    pub fn of(value: &(impl ToJson + ?Sized)) -> Self {
        let mut text = String::new();
        value.write_json(&mut text);
        Self(text)
    }

    /// The JSON text of a value that serde knows.
    ///
    /// # Errors
    /// The value has no JSON form, for example a map whose keys are not strings.
    pub fn serialize(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A look into it.
    pub fn json(&self) -> JsonRef<'_> {
        JsonRef::trusted(&self.0)
    }

    /// For texts that come from our own writers.
    pub(crate) fn trusted(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<JsonRef<'_>> for JsonText {
    fn from(json: JsonRef<'_>) -> Self {
        Self(json.text().to_owned())
    }
}

impl From<&JsonText> for JsonText {
    fn from(json: &JsonText) -> Self {
        json.clone()
    }
}

impl From<&Record> for JsonText {
    fn from(record: &Record) -> Self {
        Self(record.text().to_owned())
    }
}

impl From<Record> for JsonText {
    fn from(record: Record) -> Self {
        Self::from(&record)
    }
}

/// A value that can stand in a record.
pub trait ToJson {
    /// Appends the value as JSON.
    fn write_json(&self, out: &mut String);
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, out: &mut String) {
        (**self).write_json(out);
    }
}

/// `None` is `null`.
impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, out: &mut String) {
        match self {
            Some(value) => value.write_json(out),
            None => out.push_str("null"),
        }
    }
}

impl ToJson for str {
    fn write_json(&self, out: &mut String) {
        json_text::quote(self, out);
    }
}

impl ToJson for String {
    fn write_json(&self, out: &mut String) {
        json_text::quote(self, out);
    }
}

impl ToJson for Cow<'_, str> {
    fn write_json(&self, out: &mut String) {
        json_text::quote(self, out);
    }
}

impl ToJson for Timestamp {
    fn write_json(&self, out: &mut String) {
        json_text::quote(&self.to_string(), out);
    }
}

impl ToJson for bool {
    fn write_json(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

macro_rules! integers_to_json {
    ($($integer:ty)*) => {$(
        impl ToJson for $integer {
            fn write_json(&self, out: &mut String) {
                out.push_str(&self.to_string());
            }
        }
    )*};
}
integers_to_json!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// In the contract's float form (`2.0`); JSON has no word for NaN and the infinities, they become
/// `null`.
impl ToJson for f64 {
    fn write_json(&self, out: &mut String) {
        if self.is_finite() {
            out.push_str(&json_text::float_text(*self));
        } else {
            out.push_str("null");
        }
    }
}

impl ToJson for JsonText {
    fn write_json(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl ToJson for JsonRef<'_> {
    fn write_json(&self, out: &mut String) {
        out.push_str(self.text());
    }
}

impl ToJson for Record {
    fn write_json(&self, out: &mut String) {
        out.push_str(self.text());
    }
}

impl ToJson for Object {
    fn write_json(&self, out: &mut String) {
        out.push('{');
        for (at, (key, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(key);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
    }
}

impl ToJson for serde_json::Value {
    fn write_json(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }
}

impl<T: ToJson> ToJson for [T] {
    fn write_json(&self, out: &mut String) {
        out.push('[');
        for (at, value) in self.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            value.write_json(out);
        }
        out.push(']');
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, out: &mut String) {
        self.as_slice().write_json(out);
    }
}

/// An object in the making: fields stand in the order in which they were first set.
///
/// ```
/// use sdk::prelude::*;
///
/// let card = Object::new().set("id", "card_1").set("open", true).set_null("result");
/// assert_eq!(card.to_string(), r#"{"id":"card_1","open":true,"result":null}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// Key and value, both as JSON text.
    fields: Vec<(String, String)>,
}

impl Object {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field: a new one at the end, a known one in its place.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl ToJson) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets a field to a JSON value as it stands.
    #[must_use]
    pub fn set_json(self, name: &str, value: impl Into<JsonText>) -> Self {
        self.set(name, value.into())
    }

    /// Sets a field to `null`.
    #[must_use]
    pub fn set_null(self, name: &str) -> Self {
        self.set(name, None::<bool>)
    }

    /// [`Object::set`] on a place.
    pub fn insert(&mut self, name: &str, value: impl ToJson) {
        let value = JsonText::of(&value).into_string();
        match self.fields.iter_mut().find(|(key, _)| json_text::string_eq(key, name)) {
            Some(field) => field.1 = value,
            None => self.fields.push((JsonText::of(name).into_string(), value)),
        }
    }

    /// Drops a field; nothing happens if there is none.
    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|(key, _)| !json_text::string_eq(key, name));
    }

    /// Keeps only the fields with such names.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let keep = |key: &str| JsonRef::trusted(key).as_str_exact().is_some_and(|key| keep(&key));
        self.fields.retain(|(key, _)| keep(key));
    }

    /// The fields of a text that is an object; of any other text, none.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for span in json_text::field_spans(text) {
            let (key, value) = (&text[span.key], &text[span.value]);
            // A repeated key keeps its first position and takes its last value (contract §4).
            match places.entry(key) {
                Entry::Occupied(place) => fields[*place.get()].1 = value.to_owned(),
                Entry::Vacant(place) => {
                    place.insert(fields.len());
                    fields.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        Self { fields }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(JsonText::of(self).as_str())
    }
}

impl From<Object> for JsonText {
    fn from(object: Object) -> Self {
        Self::of(&object)
    }
}

/// Writes a text as the store keeps a record: the form of a file at nesting level 1.
pub(crate) fn canonical(text: &str, specials: Specials) -> Result<String, ParseError> {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    json_text::render(text, Layout::Pretty { level: 1 }, specials, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_field_again_keeps_its_place() {
        let object = Object::new().set("a", 1).set("b", "x").set("a", None::<&str>);
        assert_eq!(object.to_string(), r#"{"a":null,"b":"x"}"#);
    }

    #[test]
    fn values_take_the_forms_of_the_contract() {
        let object = Object::new()
            .set("float", 2.0)
            .set("nan", f64::NAN)
            .set("big", u128::MAX)
            .set("list", vec!["a", "b"])
            .set("none", None::<String>)
            .set_json("raw", JsonText::parse(r#"{"n":123456789012345678901234567890}"#).unwrap());
        assert_eq!(
            object.to_string(),
            concat!(
                r#"{"float":2.0,"nan":null,"big":340282366920938463463374607431768211455,"#,
                r#""list":["a","b"],"none":null,"raw":{"n":123456789012345678901234567890}}"#
            )
        );
    }

    #[test]
    fn keys_are_compared_by_value() {
        let mut object = Object::of_text(r#"{"caf\u00e9": 1, "b": 2}"#);
        object.insert("café", 3);
        assert_eq!(object.to_string(), r#"{"caf\u00e9":3,"b":2}"#);
        object.remove("café");
        assert_eq!(object.to_string(), r#"{"b":2}"#);
    }

    #[test]
    fn json_text_is_kept_verbatim_or_refused() {
        let deep = "[".repeat(600) + &"]".repeat(600);
        for text in ["1e5", r#""\ud800""#, " [1 ,2]", &deep] {
            assert_eq!(JsonText::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "NaN", "1e999", "{", "[1] 2"] {
            assert!(JsonText::parse(text).is_err(), "{text}");
        }
    }
}
