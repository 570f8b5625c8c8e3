use serde::Serialize;

use crate::error::{ErrorKind, UdfError};
use crate::json::{JsonText, Object, ToJson};
use crate::record::Record;
use crate::wire::{Reader, Texts, Wire, WireError, Writer};

/// What an operation answers: `data` of the envelope.
#[derive(Debug, Clone)]
pub struct Reply {
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Value(JsonText),
    Records(Vec<Record>),
    /// A value that could not be written; found when the reply leaves the operation.
    Failed(UdfError),
}

impl Reply {
    /// One record as it stands.
    pub fn record(record: impl Into<JsonText>) -> Self {
        Self::json(record)
    }

    /// A list of records as they stand. SQL takes them as rows without parsing the list.
    pub fn records(records: impl IntoIterator<Item = Record>) -> Self {
        Self { body: Body::Records(records.into_iter().collect()) }
    }

    /// Any value that serde can write.
    pub fn value(value: &(impl Serialize + ?Sized)) -> Self {
        let body = match JsonText::serialize(value) {
            Ok(json) => Body::Value(json),
            Err(error) => Body::Failed(UdfError::new(
                ErrorKind::Internal,
                format!("the reply has no JSON form: {error}"),
            )),
        };
        Self { body }
    }

    /// A JSON value: an [`Object`], a [`JsonText`], a look into a record.
    pub fn json(json: impl Into<JsonText>) -> Self {
        Self { body: Body::Value(json.into()) }
    }

    /// A plain text.
    pub fn text(text: &str) -> Self {
        Self::json(JsonText::of(text))
    }

    /// `null`.
    pub fn null() -> Self {
        Self::json(JsonText::of(&None::<bool>))
    }

    /// `{"ok": false, "error": "not found"}`: an ordinary answer, not an error (the app-store contract
    /// §8).
    pub fn not_found() -> Self {
        Self::refused("not found")
    }

    /// `{"ok": false, "error": …}`: the operation understood and declined, and nothing changed.
    pub fn refused(reason: &str) -> Self {
        Self::json(Object::new().set("ok", false).set("error", reason))
    }

    /// The records, if the reply is a list of records.
    pub fn as_records(&self) -> Option<&[Record]> {
        match &self.body {
            Body::Records(records) => Some(records),
            Body::Value(_) | Body::Failed(_) => None,
        }
    }

    /// Appends the reply as JSON text.
    ///
    /// # Errors
    /// The value given to [`Reply::value`] had no JSON form.
    pub fn write_json(&self, out: &mut String) -> Result<(), UdfError> {
        match &self.body {
            Body::Value(json) => out.push_str(json.as_str()),
            Body::Records(records) => records.write_json(out),
            Body::Failed(error) => return Err(error.clone()),
        }
        Ok(())
    }

    /// The reply as JSON text.
    ///
    /// # Errors
    /// As [`Reply::write_json`].
    pub fn to_json(&self) -> Result<String, UdfError> {
        let mut out = String::new();
        self.write_json(&mut out)?;
        Ok(out)
    }

    /// Length of the reply in bytes, without what joins records.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Value(json) => json.as_str().len(),
            Body::Records(records) => records.iter().map(|record| record.text().len()).sum(),
            Body::Failed(_) => 0,
        }
    }

    /// Whether there is nothing in it: no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The reply frame: a byte that says which form, then a text or [`Texts`].
    ///
    /// # Errors
    /// As [`Reply::write_json`], and a list beyond 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, UdfError> {
        let mut out = Writer::default();
        match &self.body {
            Body::Value(json) => {
                out.put(&VALUE);
                out.put(&json.as_str());
            }
            Body::Records(records) => {
                let mut texts = Texts::default();
                for record in records {
                    texts.push(record.text())?;
                }
                out.put(&RECORDS);
                out.put(&texts);
            }
            Body::Failed(error) => return Err(error.clone()),
        }
        Ok(out.into_bytes())
    }

    /// Reads a reply frame. The texts are taken as the JSON they claim to be.
    ///
    /// # Errors
    /// The frame is not one.
    pub fn decode(frame: &[u8]) -> Result<Self, UdfError> {
        fn read(frame: &[u8]) -> Result<Option<Body>, WireError> {
            let mut reader = Reader::new(frame);
            Ok(match u8::take(&mut reader)? {
                VALUE => {
                    Some(Body::Value(JsonText::trusted(<&str>::take(&mut reader)?.to_owned())))
                }
                RECORDS => Some(Body::Records(Record::of_texts(&Texts::take(&mut reader)?))),
                _ => None,
            })
        }
        match read(frame)? {
            Some(body) => Ok(Self { body }),
            None => Err(UdfError::new(
                ErrorKind::Unsupported,
                "the plugin answers in a form this host does not know: update the host",
            )),
        }
    }
}

const VALUE: u8 = 0;
const RECORDS: u8 = 1;

/// By content: a list of records equals the same list as one JSON text.
impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            (Body::Records(mine), Body::Records(theirs)) => mine == theirs,
            (Body::Failed(mine), Body::Failed(theirs)) => mine == theirs,
            _ => self.to_json().ok().map(compact) == other.to_json().ok().map(compact),
        }
    }
}

fn compact(text: String) -> String {
    let mut out = String::new();
    // A text that does not parse is compared as it stands.
    let accept = json_text::Specials::Accept;
    match json_text::render(&text, json_text::Layout::Compact, accept, &mut out) {
        Ok(()) => out,
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_survive_the_frame() {
        let record = Record::parse(r#"{"id":"é"}"#).unwrap();
        for reply in [
            Reply::record(record.clone()),
            Reply::records([record.clone(), Record::parse("7").unwrap()]),
            Reply::records([]),
            Reply::value(&vec![Some(1), None]),
            Reply::text("a\nb"),
            Reply::null(),
            Reply::not_found(),
        ] {
            let read = Reply::decode(&reply.encode().unwrap()).unwrap();
            assert_eq!(read.to_json(), reply.to_json());
            assert_eq!(read.as_records().is_some(), reply.as_records().is_some());
        }
        assert_eq!(
            Reply::records([record.clone(), record]).to_json().unwrap(),
            "[{\n    \"id\": \"é\"\n  },{\n    \"id\": \"é\"\n  }]"
        );
        assert_eq!(Reply::records([]).to_json().unwrap(), "[]");
    }

    #[test]
    fn acks_read_as_the_contract_says() {
        let ack = Reply::refused("already resolved").to_json().unwrap();
        assert_eq!(ack, r#"{"ok":false,"error":"already resolved"}"#);
    }

    #[test]
    fn a_value_without_json_form_is_an_error_of_the_reply() {
        let map: std::collections::BTreeMap<(u8, u8), u8> = [((1, 2), 3)].into();
        assert_eq!(Reply::value(&map).encode().unwrap_err().kind(), ErrorKind::Internal);
    }

    #[test]
    fn unknown_forms_and_torn_frames_are_errors() {
        assert_eq!(Reply::decode(&[9]).unwrap_err().kind(), ErrorKind::Unsupported);
        let frame = Reply::text("abc").encode().unwrap();
        for end in 0..frame.len() {
            assert!(Reply::decode(&frame[..end]).is_err(), "{end}");
        }
    }
}
