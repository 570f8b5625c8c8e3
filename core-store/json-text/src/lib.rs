//! JSON as text: the byte format of the app-store contract §4, and cheap looks into it.
//!
//! - [`render`] checks a text and writes it in canonical form; [`check`] only checks; [`render_joined`] takes what
//!   was put together for show.
//! - [`render_list`] does the same for a whole collection and says where each member lies.
//! - [`Json`] looks into a checked text without decoding more than is asked for.
//! - [`field_spans`] gives the top-level members of an object, for edits that copy the rest.
//! - [`FieldPattern`] finds one field of a record in a file without passing over the others.
//! - [`quote`], [`float_text`] write single values; [`string_eq`] compares without decoding.
//!
//! Numbers, unknown members, key order and lone surrogates survive: nothing here turns a text into
//! values and back. Nesting is bounded by [`MAX_DEPTH`] and costs no call stack.

mod error;
mod field;
mod number;
mod render;
mod string;
mod value;
mod walk;

pub use error::ParseError;
pub use field::FieldPattern;
pub use number::float_text;
pub use render::{Layout, check, render, render_joined, render_list};
pub use string::{quote, string_eq};
pub use value::{Fields, Items, Json, Kind, Span, field_spans};

/// How deep arrays and objects may nest, counted from the outermost value of the file.
pub const MAX_DEPTH: usize = 1024;

/// What to do with the number tokens that RFC 8259 does not know (the app-store contract §4, S16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// `NaN`, `Infinity`, `-Infinity` and numbers beyond the range of a double are kept as they are.
    /// For files, where another program may have left them.
    Accept,
    /// They are an error. For parameters and for records about to be written.
    Refuse,
}
