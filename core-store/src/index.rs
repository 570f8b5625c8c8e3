//! Which records have a given text in a given top-level field.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use json_text::FieldPattern;

use crate::collection::Records;

/// Passes on a value that is a hash already.
#[derive(Debug, Clone, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are hashed")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

const END: u32 = u32::MAX;

/// A chain of positions with one hash.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    position: u32,
    next: u32,
}

/// Positions by hash of a string field. It may name positions that do not match (equal hashes,
/// replaced records), never leave one out, so what it names is checked against the records. Flat,
/// so that carrying it to the next commit copies two blocks of memory.
#[derive(Debug, Clone)]
pub(crate) struct FieldIndex {
    pattern: FieldPattern,
    hasher: RandomState,
    chains: HashMap<u64, Chain, BuildHasherDefault<Same>>,
    links: Vec<Link>,
}

impl FieldIndex {
    pub(crate) fn build(field: &str, records: &Records) -> Self {
        let mut index = Self {
            pattern: FieldPattern::new(field),
            hasher: RandomState::new(),
            chains: HashMap::default(),
            links: Vec::with_capacity(records.len()),
        };
        for (position, text) in records.texts().enumerate() {
            index.add(position, text);
        }
        index
    }

    /// Takes in the record that now stands at `position`.
    pub(crate) fn add(&mut self, position: usize, text: &str) {
        // A string with a lone surrogate equals no text that is asked for.
        let Some(value) = self.pattern.find(text).and_then(|json| json.as_str_exact()) else {
            return;
        };
        // The positions of a list in memory are far below 2^32.
        let (position, link) = (position as u32, self.links.len() as u32);
        self.links.push(Link { position, next: END });
        let hash = self.hasher.hash_one(value.as_ref());
        match self.chains.get_mut(&hash) {
            Some(chain) => {
                self.links[chain.last as usize].next = link;
                chain.last = link;
            }
            None => {
                self.chains.insert(hash, Chain { first: link, last: link });
            }
        }
    }

    /// Whether so much of it is outdated that building it anew is better.
    pub(crate) fn is_worn(&self, records: usize) -> bool {
        self.links.len() > 2 * records + 1024
    }

    /// Positions whose field equals `value`, in file order.
    pub(crate) fn matching<'a>(
        &'a self,
        value: &'a str,
        records: &'a Records,
    ) -> impl Iterator<Item = usize> + 'a {
        let hash = self.hasher.hash_one(value);
        let mut at = self.chains.get(&hash).map_or(END, |chain| chain.first);
        let mut positions = Vec::new();
        while let Some(link) = self.links.get(at as usize) {
            positions.push(link.position as usize);
            at = link.next;
        }
        // In order already, unless records were replaced.
        positions.sort_unstable();
        positions.dedup();
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = positions.get(at..)?;
            if at.is_multiple_of(Records::AT_ONCE) {
                records.fetch(rest);
            }
            at += 1;
            rest.first().copied()
        })
        .filter(move |position| {
            let text = records.text(*position).unwrap_or("");
            self.pattern.find(text).is_some_and(|json| json.eq_str(value))
        })
    }
}
