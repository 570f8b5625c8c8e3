//! The byte layout of everything that crosses the boundary.
//!
//! Numbers are little-endian; a text or byte string is its `u32` length and its bytes; a list is its
//! `u32` count and its members; an optional value is a byte 0 or 1 and the value. A frame is the
//! fields of one message in order. A reader ignores what follows the fields it knows, so a later
//! interface appends fields; it never trusts a length beyond the bytes that are there.

use std::fmt;

mod messages;

pub use messages::*;

/// A frame that does not hold what its reader expects: the two sides disagree about the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError(&'static str);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unreadable frame at the plugin boundary: {}", self.0)
    }
}

impl std::error::Error for WireError {}

/// A value with a byte form. `'a` is the frame it is read from; texts are borrowed from there.
pub trait Wire<'a>: Sized {
    /// Appends the byte form.
    fn put_into(&self, out: &mut Writer);
    /// Reads the byte form from the front.
    ///
    /// # Errors
    /// The bytes end early or are not of this form.
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError>;

    /// A whole frame of this one message.
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        self.put_into(&mut out);
        out.into_bytes()
    }

    /// Reads a whole frame; what follows the known fields is ignored.
    ///
    /// # Errors
    /// As [`Wire::take`].
    fn decode(frame: &'a [u8]) -> Result<Self, WireError> {
        Self::take(&mut Reader::new(frame))
    }
}

/// Collects a frame.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a value.
    pub fn put<'a>(&mut self, value: &impl Wire<'a>) {
        value.put_into(self);
    }

    /// Appends bytes as they are, without a length.
    pub fn put_raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The frame.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn put_len(&mut self, len: usize) {
        // A length that does not fit stands for bytes nobody can hold in one reply; the reader then
        // finds too few bytes and refuses the frame.
        self.put(&u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// Walks a frame.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(frame: &'a [u8]) -> Self {
        Self { rest: frame }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(WireError("it ends early"))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError("it ends early"))?;
        self.rest = rest;
        Ok(*head)
    }

    fn len(&mut self) -> Result<usize, WireError> {
        Ok(u32::take(self)? as usize)
    }
}

macro_rules! wire_number {
    ($($number:ty)*) => {$(
        impl<'a> Wire<'a> for $number {
            fn put_into(&self, out: &mut Writer) {
                out.put_raw(&self.to_le_bytes());
            }
            fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        }
    )*};
}
wire_number!(u8 u32 u64 i64);

impl<'a> Wire<'a> for () {
    fn put_into(&self, _: &mut Writer) {}
    fn take(_: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(())
    }
}

impl<'a> Wire<'a> for bool {
    fn put_into(&self, out: &mut Writer) {
        out.put(&u8::from(*self));
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError("a flag is neither 0 nor 1")),
        }
    }
}

impl<'a> Wire<'a> for &'a [u8] {
    fn put_into(&self, out: &mut Writer) {
        out.put_len(self.len());
        out.put_raw(self);
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let len = from.len()?;
        from.bytes(len)
    }
}

impl<'a> Wire<'a> for &'a str {
    fn put_into(&self, out: &mut Writer) {
        out.put_len(self.len());
        out.put_raw(self.as_bytes());
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        std::str::from_utf8(<&[u8]>::take(from)?).map_err(|_| WireError("a text is not UTF-8"))
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Option<T> {
    fn put_into(&self, out: &mut Writer) {
        out.put(&self.is_some());
        if let Some(value) = self {
            out.put(value);
        }
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    fn put_into(&self, out: &mut Writer) {
        out.put_len(self.len());
        for value in self {
            out.put(value);
        }
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = from.len()?;
        // A forged count must not reserve memory: every member takes at least one byte.
        let mut values = Vec::with_capacity(count.min(from.rest.len()));
        for _ in 0..count {
            if from.rest.is_empty() {
                return Err(WireError("it ends early"));
            }
            values.push(T::take(from)?);
        }
        Ok(values)
    }
}

impl<'a, A: Wire<'a>, B: Wire<'a>> Wire<'a> for (A, B) {
    fn put_into(&self, out: &mut Writer) {
        out.put(&self.0);
        out.put(&self.1);
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

/// Many texts as their lengths and then all their bytes in one piece, so that a reader keeps one
/// buffer and cuts it instead of copying text by text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts<'a> {
    ends: Vec<u32>,
    joined: std::borrow::Cow<'a, str>,
}

impl<'a> Texts<'a> {
    /// Appends one text. Fails when all together would pass 4 GiB.
    ///
    /// # Errors
    /// The texts do not fit one frame.
    pub fn push(&mut self, text: &str) -> Result<(), WireError> {
        let end = u32::try_from(self.joined.len() + text.len())
            .map_err(|_| WireError("more than 4 GiB of text"))?;
        self.joined.to_mut().push_str(text);
        self.ends.push(end);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All bytes in one piece; [`Texts::spans`] cuts it.
    pub fn joined(&self) -> &str {
        &self.joined
    }

    /// Start and end of each text in [`Texts::joined`].
    pub fn spans(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| (std::mem::replace(&mut start, end), end))
    }

    /// Each text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        self.spans().map(|(start, end)| &self.joined[start as usize..end as usize])
    }
}

impl<'a> Wire<'a> for Texts<'a> {
    fn put_into(&self, out: &mut Writer) {
        out.put_len(self.ends.len());
        for end in &self.ends {
            out.put(end);
        }
        out.put(&self.joined.as_ref());
    }
    fn take(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let ends = Vec::<u32>::take(from)?;
        let joined = <&str>::take(from)?;
        let mut start = 0;
        for &end in &ends {
            if end < start || !joined.is_char_boundary(end as usize) {
                return Err(WireError("a text ends outside its buffer"));
            }
            start = end;
        }
        Ok(Self { ends, joined: joined.into() })
    }
}

#[cfg(test)]
mod tests;
