//! One collection's records as text, in file order: unknown keys, number text and odd members kept.

use std::ops::Range;
use std::sync::Arc;

use json_text::{FieldPattern, Json};

use crate::StoreError;

/// The order in which several collections are saved and the first corrupt one is named (the
/// app-store contract §3). Others come after these, by name.
const ORDER: [&str; 11] = [
    "tasks",
    "runs",
    "comments",
    "inbox",
    "cards",
    "serveMcp",
    "costEvents",
    "gatePolicies",
    "onboarding",
    "dismissedFeedbackKeys",
    "artifactChats",
];

/// Sort key for the fixed order of collections.
pub(crate) fn rank(name: &str) -> (usize, &str) {
    (ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len()), name)
}

/// What a collection holds while its file is missing (the app-store contract §3).
pub(crate) fn default_text(name: &str) -> &'static str {
    match name {
        "serveMcp" | "gatePolicies" => "{}",
        "onboarding" => "{\n  \"completed\": false,\n  \"version\": 1\n}",
        _ => "[]",
    }
}

/// Whether a writer may put a list in the place of a value that is neither a list nor falsy (the
/// app-store contract §8.1, `acknowledge_feedback`).
pub(crate) fn gives_way(name: &str) -> bool {
    name == "dismissedFeedbackKeys"
}

/// Names become file names, so nothing that could leave `state/` or clash with sentinels.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.len() <= 100 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(StoreError::Name { what: "collection", name: name.to_owned() })
}

/// One member of a collection: the bytes it has in a canonical file, its first line not indented.
/// Any JSON value may be one. Keeps the text of its commit alive; cheap to clone.
#[derive(Debug, Clone)]
pub struct Record {
    text: Arc<String>,
    range: Range<usize>,
}

impl Record {
    /// The record's text in the form of the app-store contract §4, at nesting level 1.
    pub fn text(&self) -> &str {
        &self.text[self.range.clone()]
    }

    /// The record as JSON to look into.
    pub fn json(&self) -> Json<'_> {
        Json::trusted(self.text())
    }

    /// A top-level field, without looking at the others; `None` when the record is no object or has
    /// no such field.
    pub fn field(&self, field: &str) -> Option<Json<'_>> {
        FieldPattern::new(field).find(self.text())
    }

    /// A top-level field that is a string.
    pub fn str(&self, field: &str) -> Option<std::borrow::Cow<'_, str>> {
        self.field(field)?.as_str()
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Record {}

/// Between two records of a canonical file.
const SEPARATOR: &str = ",\n  ";

/// Where a record's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    buffer: usize,
    start: usize,
    end: usize,
}

/// The records of one state of a collection, as places in shared texts. Cloning copies places only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    buffers: Vec<Arc<String>>,
    spots: Vec<Spot>,
}

impl Records {
    pub(crate) fn of_file(text: String, items: Vec<Range<usize>>) -> Self {
        let spots =
            items.into_iter().map(|r| Spot { buffer: 0, start: r.start, end: r.end }).collect();
        Self { buffers: vec![Arc::new(text)], spots }
    }

    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    pub(crate) fn get(&self, position: usize) -> Option<Record> {
        self.spots.get(position).map(|spot| Record {
            text: Arc::clone(&self.buffers[spot.buffer]),
            range: spot.start..spot.end,
        })
    }

    pub(crate) fn text(&self, position: usize) -> Option<&str> {
        self.spots.get(position).map(|spot| self.at(spot))
    }

    fn at(&self, spot: &Spot) -> &str {
        &self.buffers[spot.buffer][spot.start..spot.end]
    }

    /// How many records [`fetch`](Self::fetch) takes.
    pub(crate) const AT_ONCE: usize = 16;

    /// Touches the first of the records at these positions, which are about to be read. They lie anywhere
    /// in texts larger than the processor's caches: touched side by side they come from memory in
    /// little more than the time of one, read one after another each is waited for.
    pub(crate) fn fetch(&self, positions: &[usize]) {
        const CACHE_LINE: usize = 64;
        /// What follows is read ahead by the processor.
        const BEGINNING: usize = 1024;
        let mut sum = 0;
        for text in positions.iter().take(Self::AT_ONCE).filter_map(|at| self.text(*at)) {
            let beginning = text.as_bytes().iter().take(BEGINNING);
            sum = beginning.step_by(CACHE_LINE).fold(sum, |sum, byte| sum ^ byte);
        }
        std::hint::black_box(sum);
    }

    pub(crate) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spots.iter().map(|spot| self.at(spot))
    }

    /// Adds a text for records to point into.
    pub(crate) fn add_buffer(&mut self, text: String) -> usize {
        self.buffers.push(Arc::new(text));
        self.buffers.len() - 1
    }

    pub(crate) fn push(&mut self, buffer: usize, range: Range<usize>) {
        self.spots.push(Spot { buffer, start: range.start, end: range.end });
    }

    pub(crate) fn replace(&mut self, position: usize, buffer: usize, range: Range<usize>) {
        self.spots[position] = Spot { buffer, start: range.start, end: range.end };
    }

    /// Keeps the records whose position passes.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut position = 0;
        self.spots.retain(|_| {
            position += 1;
            keep(position - 1)
        });
    }

    /// Whether both hold the same texts in the same order. `other` is an earlier state of `self`,
    /// so that equal places mean equal text.
    pub(crate) fn same_as_before(&self, other: &Records) -> bool {
        self.spots.len() == other.spots.len()
            && self.spots.iter().zip(&other.spots).all(|(a, b)| a == b || self.at(a) == other.at(b))
    }

    /// Gathers what a group of writers added beyond the first `known` texts into one text, and
    /// everything into one when texts have become many or mostly dead. So a file of many records
    /// stays a few long pieces.
    pub(crate) fn tidy(&mut self, known: usize) {
        const MANY: usize = 64;
        let live: usize = self.spots.iter().map(|spot| spot.end - spot.start + 4).sum();
        let held: usize = self.buffers.iter().map(|text| text.len()).sum();
        let all = known + 1 > MANY || held > 2 * live + 65_536;
        let known = if all { 0 } else { known.min(self.buffers.len()) };
        let moved = |spot: &&mut Spot| spot.buffer >= known;
        let size = if all { live + 8 } else { 0 };
        let mut text = String::with_capacity(size);
        for spot in self.spots.iter_mut().filter(moved) {
            text.push_str(if text.is_empty() { "[\n  " } else { SEPARATOR });
            let start = text.len();
            text.push_str(&self.buffers[spot.buffer][spot.start..spot.end]);
            *spot = Spot { buffer: known, start, end: text.len() };
        }
        self.buffers.truncate(known);
        if !text.is_empty() {
            self.buffers.push(Arc::new(text));
        }
    }

    /// How many texts the records lie in.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// The bytes of the file, as few pieces as possible: neighbours in one text are one piece.
    pub(crate) fn pieces(&self) -> Vec<&[u8]> {
        let Some(first) = self.spots.first() else { return vec![b"[]"] };
        let mut pieces: Vec<&[u8]> = vec![b"[\n  "];
        let mut run = *first;
        for spot in &self.spots[1..] {
            let text = &self.buffers[run.buffer];
            let adjacent = spot.buffer == run.buffer
                && spot.start == run.end + SEPARATOR.len()
                && text.as_bytes()[run.end..].starts_with(SEPARATOR.as_bytes());
            if adjacent {
                run.end = spot.end;
            } else {
                pieces.push(self.at(&run).as_bytes());
                pieces.push(SEPARATOR.as_bytes());
                run = *spot;
            }
        }
        pieces.push(self.at(&run).as_bytes());
        pieces.push(b"\n]");
        pieces
    }
}
