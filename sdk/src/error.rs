use std::fmt;

use crate::wire::{Reader, Wire, WireError, Writer};

/// Why a call gave no reply. The kind decides the status a host answers with, the message goes to
/// the caller as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdfError {
    kind: ErrorKind,
    message: String,
}

/// What went wrong, in the terms of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A parameter is missing, unknown or unreadable (400).
    BadParameter,
    /// The operation says no: its own error (422).
    Raised,
    /// The operation panicked (500).
    Panicked,
    /// The caller has gone away.
    Cancelled,
    /// The deadline passed (504).
    Timeout,
    /// The host does not know the request: it is older than the plugin (500).
    Unsupported,
    /// The operation touched what it did not declare (500).
    Refused,
    /// There is no operation of this name (404).
    NotFound,
    /// The host has no room for the call (503).
    Overloaded,
    /// A fault of the host or of the boundary itself (500).
    Internal,
}

impl ErrorKind {
    const NUMBERS: [(Self, u8); 10] = [
        (Self::BadParameter, 1),
        (Self::Raised, 2),
        (Self::Panicked, 3),
        (Self::Cancelled, 4),
        (Self::Timeout, 5),
        (Self::Unsupported, 6),
        (Self::Refused, 7),
        (Self::NotFound, 8),
        (Self::Overloaded, 9),
        (Self::Internal, 255),
    ];

    fn number(self) -> u8 {
        Self::NUMBERS.iter().find(|(kind, _)| *kind == self).map_or(255, |(_, number)| *number)
    }

    /// A number of a later interface reads as `Internal`: its message still reaches the caller.
    fn from_number(number: u8) -> Self {
        Self::NUMBERS.iter().find(|(_, n)| *n == number).map_or(Self::Internal, |(kind, _)| *kind)
    }
}

impl UdfError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The operation's own refusal: what is wrong and what to do, for the caller to read.
    pub fn raised(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Raised, message)
    }

    /// A parameter that cannot be used.
    pub fn bad_parameter(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadParameter, message)
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the caller reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.put(&self.kind.number());
        out.put(&self.message.as_str());
        out.into_bytes()
    }

    /// Reads an error frame. A frame that cannot be read is itself an `Internal` error.
    pub fn decode(frame: &[u8]) -> Self {
        fn read(frame: &[u8]) -> Result<UdfError, WireError> {
            let mut reader = Reader::new(frame);
            let kind = ErrorKind::from_number(u8::take(&mut reader)?);
            Ok(UdfError::new(kind, <&str>::take(&mut reader)?))
        }
        read(frame).unwrap_or_else(Self::from)
    }
}

impl fmt::Display for UdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UdfError {}

impl From<WireError> for UdfError {
    fn from(error: WireError) -> Self {
        Self::new(ErrorKind::Internal, error.to_string())
    }
}

/// For values an operation serialises or parses itself.
impl From<serde_json::Error> for UdfError {
    fn from(error: serde_json::Error) -> Self {
        Self::raised(error.to_string())
    }
}

/// For JSON texts an operation checks itself.
impl From<json_text::ParseError> for UdfError {
    fn from(error: json_text::ParseError) -> Self {
        Self::raised(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_frame() {
        for (kind, _) in ErrorKind::NUMBERS {
            let error = UdfError::new(kind, "what went wrong: \u{1F600}");
            assert_eq!(UdfError::decode(&error.encode()), error);
        }
    }

    #[test]
    fn a_frame_of_a_later_interface_keeps_its_message() {
        let mut out = Writer::default();
        out.put(&77_u8);
        out.put(&"new kind of trouble");
        out.put(&"a field nobody here knows");
        let error = UdfError::decode(&out.into_bytes());
        assert_eq!((error.kind(), error.message()), (ErrorKind::Internal, "new kind of trouble"));
    }

    #[test]
    fn a_torn_frame_is_an_internal_error() {
        let frame = UdfError::raised("no").encode();
        for end in 0..frame.len() {
            assert_eq!(UdfError::decode(&frame[..end]).kind(), ErrorKind::Internal, "{end}");
        }
    }
}
