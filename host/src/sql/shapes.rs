//! [`Shapes`]: whether records have just the columns that an operation declares.

use std::sync::{Arc, Mutex, PoisonError};

use core_store::Check;

use super::table::{Declared, Shape};

/// Shapes that are remembered: a store counts by the identity of a check.
const MOST: usize = 64;

/// The checks of the operations that were asked about, one for each list of columns.
#[derive(Default)]
pub(crate) struct Shapes(Mutex<Vec<(Vec<Declared>, Check)>>);

impl Shapes {
    /// Passes a record that has just these columns, with cells of these types.
    pub(crate) fn check(&self, columns: &[Declared]) -> Check {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, check)) = known.iter().find(|(declared, _)| declared == columns) {
            return Arc::clone(check);
        }
        if known.len() >= MOST {
            known.remove(0);
        }
        let shape = Shape::new(columns);
        let check: Check = Arc::new(move |record: &str| shape.fits(record));
        known.push((columns.to_vec(), Arc::clone(&check)));
        check
    }
}
