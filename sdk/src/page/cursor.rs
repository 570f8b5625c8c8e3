//! [`Cursor`]: where in the order of a list a page ended.

use std::cmp::Ordering;
use std::fmt;

use super::Stamped;

/// How many of the records before its own, of the same stamp, a cursor remembers.
const KNOWN: usize = 16;

const MARK: &str = "c1-";

/// Where in the order a record stands: its stamp, how many of the same stamp come before it, its id, and
/// by which to find the place when it is gone: what stood before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    nth: usize,
    stamp: String,
    /// As JSON text; empty = the record has none.
    id: String,
    /// Hashes of the ids of those before it, of the same stamp, the nearest first; at most [`KNOWN`].
    before: Vec<u32>,
}

impl Cursor {
    /// The cursor of the last of these, which are all records of its stamp up to it.
    ///
    /// # Panics
    /// There is none.
    pub(super) fn of(ties: &[Stamped]) -> Self {
        let nth = ties.len() - 1;
        let row = &ties[nth];
        let before = ties[..nth].iter().rev().take(KNOWN).map(|row| hash(row.id())).collect();
        Self { nth, stamp: row.stamp.clone(), id: row.id().to_owned(), before }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(MARK)?.split('-');
        let nth = parts.next()?.parse().ok()?;
        let mut bytes = || unhex(parts.next()?);
        let stamp = String::from_utf8(bytes()?).ok()?;
        let id = String::from_utf8(bytes()?).ok()?;
        let hashes = parts.next().map_or(Some(Vec::new()), unhex)?;
        let (hashes, rest) = hashes.as_chunks();
        let before: Vec<u32> = hashes.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        let whole = parts.next().is_none() && rest.is_empty() && before.len() <= KNOWN;
        whole.then_some(Self { nth, stamp, id, before })
    }

    /// Index of the first record behind the cursor's. If that one was removed meanwhile, it is behind the nearest that
    /// is left of those that stood before it. If none of them is, all of the stamp are shown, once more perhaps:
    /// better twice than never.
    pub(super) fn position(&self, list: &[Stamped], order: fn(&str, &str) -> Ordering) -> usize {
        let first = list.partition_point(|row| order(&row.stamp, &self.stamp).is_lt());
        let ties = list[first..].iter().take_while(|row| row.stamp == self.stamp).count();
        let ties = &list[first..first + ties];
        let same = |row: &Stamped| row.id() == self.id;
        if ties.get(self.nth).is_some_and(same) {
            return first + self.nth + 1;
        }
        let hashes: Vec<u32> = ties.iter().map(|row| hash(row.id())).collect();
        let left = |known: &u32| hashes.iter().position(|hash| hash == known);
        let at = ties.iter().position(same).or_else(|| self.before.iter().find_map(left));
        first + at.map_or(0, |at| at + 1)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}-", self.nth)?;
        self.stamp.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.id.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if !self.before.is_empty() {
            f.write_str("-")?;
        }
        self.before.iter().try_for_each(|hash| write!(f, "{hash:08x}"))
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// FNV-1a, the same in each version of a host.
fn hash(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
