//! [`Reply`]: what an operation answered, as text that nobody parses again.

use std::borrow::Cow;

use crate::error::HostError;

/// What an operation answered. Every text in it is one valid JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One JSON value.
    Value(String),
    /// A list, one JSON text for each member, so that SQL gets rows without parsing them out of a list.
    Records(Vec<String>),
}

impl Reply {
    /// Takes over what a lane brought.
    pub(crate) fn of(reply: sdk::Reply) -> Result<Self, HostError> {
        if let Some(records) = reply.as_records() {
            return Ok(Self::Records(
                records.iter().map(|record| record.text().to_owned()).collect(),
            ));
        }
        reply.to_json().map(Self::Value).map_err(|error| HostError::Internal {
            message: error.message().to_owned(),
            detail: String::new(),
        })
    }

    /// The reply as one JSON text.
    #[must_use]
    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Value(text) => Cow::Borrowed(text),
            Self::Records(_) => {
                let mut out = String::with_capacity(self.json_len());
                self.write_json(&mut out);
                Cow::Owned(out)
            }
        }
    }

    /// Appends the reply as one JSON text to `out`.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Value(text) => out.push_str(text),
            Self::Records(texts) => {
                out.push('[');
                for (at, text) in texts.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(text);
                }
                out.push(']');
            }
        }
    }

    /// Bytes that [`Reply::write_json`] will append.
    #[must_use]
    pub fn json_len(&self) -> usize {
        match self {
            Self::Value(text) => text.len(),
            Self::Records(texts) => {
                texts.iter().map(String::len).sum::<usize>() + texts.len().saturating_sub(1) + 2
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_join_to_a_list_of_the_announced_length() {
        for (texts, want) in [(vec![], "[]"), (vec!["1"], "[1]"), (vec!["{}", "2"], "[{},2]")] {
            let reply = Reply::Records(texts.into_iter().map(str::to_owned).collect());
            assert_eq!(reply.to_json(), want);
            assert_eq!(reply.json_len(), want.len());
        }
    }
}
