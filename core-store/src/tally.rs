//! How many records fail a check, carried from commit to commit.

use std::fmt;
use std::sync::Arc;

/// What [`crate::Snapshot::all`] asks of each record's text. Two checks are the same if they are one `Arc`.
pub type Check = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Checks that one collection keeps count of; the one longest there makes room for another.
const MAX_CHECKS: usize = 4;

/// One check and how many records fail it.
#[derive(Clone)]
struct Tally {
    check: Check,
    failing: usize,
}

/// The tallies of one state of a collection.
#[derive(Clone, Default)]
pub(crate) struct Tallies(Vec<Tally>);

impl fmt::Debug for Tallies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tally| tally.failing)).finish()
    }
}

impl Tallies {
    /// How many records fail, if that has been counted.
    pub(crate) fn failing(&self, check: &Check) -> Option<usize> {
        self.0.iter().find(|tally| Arc::ptr_eq(&tally.check, check)).map(|tally| tally.failing)
    }

    /// Counts once; from then on [`Tallies::left`] and [`Tallies::came`] keep the number.
    pub(crate) fn count<'a>(
        &mut self,
        check: &Check,
        records: impl Iterator<Item = &'a str>,
    ) -> usize {
        if let Some(failing) = self.failing(check) {
            return failing;
        }
        if self.0.len() >= MAX_CHECKS {
            self.0.remove(0);
        }
        let failing = records.filter(|text| !check(text)).count();
        self.0.push(Tally { check: Arc::clone(check), failing });
        failing
    }

    /// A record with this text is there no more.
    pub(crate) fn left(&mut self, text: &str) {
        for tally in &mut self.0 {
            tally.failing -= usize::from(!(tally.check)(text));
        }
    }

    /// A record with this text is there now.
    pub(crate) fn came(&mut self, text: &str) {
        for tally in &mut self.0 {
            tally.failing += usize::from(!(tally.check)(text));
        }
    }

    /// What is counted.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &Check> {
        self.0.iter().map(|tally| &tally.check)
    }
}
