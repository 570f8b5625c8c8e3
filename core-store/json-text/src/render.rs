//! Writing a text in the form of the app-store contract §4.

use std::collections::HashMap;
use std::ops::Range;

use crate::walk::{Sink, walk};
use crate::{MAX_DEPTH, ParseError, Specials, number, string};

/// What a text may grow to when it is indented: so many bytes, and so many for each byte of it. One that many thousand
/// members of one list stand a thousand levels deep in would fill the memory with blanks.
const GROWTH: Growth = Growth { bytes: 16 << 20, times: 32 };
/// The same for a whole file, which another program may have written without indentation.
const FILE_GROWTH: Growth = Growth { bytes: 1 << 30, times: 32 };

#[derive(Clone, Copy)]
struct Growth {
    bytes: usize,
    times: usize,
}

/// Where line breaks and blanks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Two blanks per level, as files under `state/` are written. The value is written as it stands
    /// at nesting `level` of a file; its first line is not indented. The level counts for
    /// [`MAX_DEPTH`](crate::MAX_DEPTH).
    Pretty {
        /// How many arrays and objects surround the value.
        level: usize,
    },
    /// One line, `", "` and `": "`: a transcript line (without its newline).
    Line,
    /// No blanks at all.
    Compact,
}

/// Checks `text` and appends it to `out` in canonical form: key order kept, a repeated key with its
/// first position and last value, number forms, escapes, lone surrogates as `\udxxx` (the app-store
/// contract §4). On an error `out` is left as it was.
pub fn render(
    text: &str,
    layout: Layout,
    specials: Specials,
    out: &mut String,
) -> Result<(), ParseError> {
    let level = match layout {
        Layout::Pretty { level } => level,
        Layout::Line | Layout::Compact => 0,
    };
    render_within(MAX_DEPTH.saturating_sub(level), text, layout, specials, out)
}

/// As [`render`], for a text put together of some that were checked, to be shown and never stored: it may nest
/// twice as deep.
pub fn render_joined(
    text: &str,
    layout: Layout,
    specials: Specials,
    out: &mut String,
) -> Result<(), ParseError> {
    render_within(2 * MAX_DEPTH, text, layout, specials, out)
}

fn render_within(
    levels: usize,
    text: &str,
    layout: Layout,
    specials: Specials,
    out: &mut String,
) -> Result<(), ParseError> {
    let start = out.len();
    let mut renderer = Renderer::new((text, GROWTH), layout, out, None);
    let result = walk(text, levels, specials, &mut renderer).and_then(|()| renderer.finish(text));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Renders a whole file ([`Layout::Pretty`], level 0) and, when it is an array, appends the place of
/// each member in `out` to `items`. Whether it is one shows in the first byte written.
pub fn render_list(
    text: &str,
    specials: Specials,
    out: &mut String,
    items: &mut Vec<Range<usize>>,
) -> Result<(), ParseError> {
    let (start, first) = (out.len(), items.len());
    let mut renderer =
        Renderer::new((text, FILE_GROWTH), Layout::Pretty { level: 0 }, out, Some(items));
    let result =
        walk(text, MAX_DEPTH, specials, &mut renderer).and_then(|()| renderer.finish(text));
    if result.is_err() {
        out.truncate(start);
        items.truncate(first);
    }
    result
}

/// Only checks: the text is exactly one JSON value within the limits.
pub fn check(text: &str, specials: Specials) -> Result<(), ParseError> {
    walk(text, MAX_DEPTH, specials, &mut Nothing)
}

struct Nothing;

impl Sink for Nothing {
    fn open(&mut self, _: bool) {}
    fn close(&mut self, _: bool, _: bool) {}
    fn item(&mut self, _: bool) {}
    fn key(&mut self, _: bool, _: &str, _: bool) {}
    fn string(&mut self, _: &str, _: bool) {}
    fn number(&mut self, _: &str, _: bool) {}
    fn word(&mut self, _: &'static str) {}
}

/// A member of an object that is still open: where its key and value stand in `out`.
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

struct Renderer<'o> {
    layout: Layout,
    level: usize,
    out: &'o mut String,
    items: Option<&'o mut Vec<Range<usize>>>,
    members: Vec<Member>,
    /// For each open array or object: where it starts in `out`, and its first entry in `members`.
    open: Vec<(usize, usize)>,
    /// Where `out` has grown too large; what is written then is not kept, and needs no blanks.
    most: usize,
}

impl<'o> Renderer<'o> {
    fn new(
        (text, growth): (&str, Growth),
        layout: Layout,
        out: &'o mut String,
        items: Option<&'o mut Vec<Range<usize>>>,
    ) -> Self {
        let level = match layout {
            Layout::Pretty { level } => level,
            Layout::Line | Layout::Compact => 0,
        };
        let growth = text.len().saturating_mul(growth.times).saturating_add(growth.bytes);
        let most = out.len().saturating_add(growth);
        Self { layout, level, out, items, members: Vec::new(), open: Vec::new(), most }
    }

    /// Whether what was written is of a size that its text has any use for.
    fn finish(&self, text: &str) -> Result<(), ParseError> {
        if self.out.len() <= self.most {
            return Ok(());
        }
        let reason = format!("with its indentation it takes more than {} MiB", self.most >> 20);
        Err(ParseError::new(reason, text, 0))
    }

    fn line_break(&mut self) {
        if self.out.len() > self.most {
            return;
        }
        const BLANKS: &str = "\n                                                                ";
        let width = 2 * self.level;
        if width < BLANKS.len() {
            self.out.push_str(&BLANKS[..=width]);
        } else {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', width));
        }
    }

    fn separate(&mut self, first: bool) {
        if !first {
            self.out.push(',');
        }
        match self.layout {
            Layout::Pretty { .. } => self.line_break(),
            Layout::Line if !first => self.out.push(' '),
            Layout::Line | Layout::Compact => {}
        }
    }

    fn literal(&mut self, inner: &str, plain: bool) {
        self.out.push('"');
        if plain {
            self.out.push_str(inner);
        } else {
            string::push_reescaped(inner, self.out);
        }
        self.out.push('"');
    }

    /// Ends the member of the outermost array that was just written.
    fn end_item(&mut self) {
        if self.open.len() == 1
            && let Some(last) = self.items.as_mut().and_then(|items| items.last_mut())
        {
            last.end = self.out.len();
        }
    }

    /// Ends the member of the innermost object that was just written.
    fn end_member(&mut self) {
        if let Some(last) = self.members.last_mut() {
            last.value.end = self.out.len();
        }
    }

    /// A repeated key keeps its first position and takes the last value. Runs before the closing
    /// bracket is written.
    fn merge_repeated(&mut self, start: usize, first_member: usize) {
        let members = &self.members[first_member..];
        if !has_repeated(members, self.out) {
            return;
        }
        // Rare, so the object is written anew: each key once, each with its last value.
        let mut position: HashMap<&str, usize> = HashMap::new();
        let mut kept: Vec<(&str, &str)> = Vec::new();
        for member in members {
            let key = &self.out[member.key.clone()];
            let value = &self.out[member.value.clone()];
            match position.get(key) {
                Some(at) => kept[*at].1 = value,
                None => {
                    position.insert(key, kept.len());
                    kept.push((key, value));
                }
            }
        }
        let separator = &self.out[members[0].value.end..members[1].key.start];
        let colon = &self.out[members[0].key.end..members[0].value.start];
        let mut body = self.out[start..members[0].key.start].to_owned();
        for (i, (key, value)) in kept.into_iter().enumerate() {
            if i > 0 {
                body.push_str(separator);
            }
            body.push_str(key);
            body.push_str(colon);
            body.push_str(value);
        }
        self.out.truncate(start);
        self.out.push_str(&body);
    }
}

impl Sink for Renderer<'_> {
    fn open(&mut self, object: bool) {
        self.open.push((self.out.len(), self.members.len()));
        self.level += 1;
        self.out.push(if object { '{' } else { '[' });
    }

    fn close(&mut self, object: bool, empty: bool) {
        if !empty {
            if object {
                self.end_member();
            } else {
                self.end_item();
            }
        }
        if let Some((start, first_member)) = self.open.pop()
            && object
        {
            if self.members.len() > first_member + 1 {
                self.merge_repeated(start, first_member);
            }
            self.members.truncate(first_member);
        }
        self.level -= 1;
        if !empty && matches!(self.layout, Layout::Pretty { .. }) {
            self.line_break();
        }
        self.out.push(if object { '}' } else { ']' });
    }

    fn item(&mut self, first: bool) {
        if !first {
            self.end_item();
        }
        self.separate(first);
        if self.open.len() == 1
            && let Some(items) = &mut self.items
        {
            items.push(self.out.len()..self.out.len());
        }
    }

    fn key(&mut self, first: bool, inner: &str, plain: bool) {
        if !first {
            self.end_member();
        }
        self.separate(first);
        let start = self.out.len();
        self.literal(inner, plain);
        let key = start..self.out.len();
        self.out.push_str(if self.layout == Layout::Compact { ":" } else { ": " });
        self.members.push(Member { key, value: self.out.len()..self.out.len() });
    }

    fn string(&mut self, inner: &str, plain: bool) {
        self.literal(inner, plain);
    }

    fn number(&mut self, raw: &str, float: bool) {
        number::push_number(raw, float, self.out);
    }

    fn word(&mut self, word: &'static str) {
        self.out.push_str(word);
    }
}

fn has_repeated(members: &[Member], out: &str) -> bool {
    let key = |m: &Member| &out.as_bytes()[m.key.clone()];
    if members.len() <= 24 {
        return members.iter().enumerate().any(|(i, m)| {
            members[..i].iter().any(|o| o.key.len() == m.key.len() && key(o) == key(m))
        });
    }
    let mut keys: Vec<&[u8]> = members.iter().map(key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
