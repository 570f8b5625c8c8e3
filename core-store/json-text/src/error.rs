use std::fmt;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    reason: String,
    offset: usize,
    line: usize,
    column: usize,
}

impl ParseError {
    pub(crate) fn new(reason: impl Into<String>, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        // Characters, not bytes: continuation bytes do not move the column.
        let column = 1 + before[line_start..].iter().filter(|b| **b & 0xC0 != 0x80).count();
        Self { reason: reason.into(), offset, line, column }
    }

    /// What was expected or found, without the place.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Byte offset of the fault in the text.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Line of the fault, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column of the fault in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {} column {}", self.reason, self.line, self.column)
    }
}

impl std::error::Error for ParseError {}
