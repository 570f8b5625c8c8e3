//! [`TableCache`]: tables that are known to be what the operation would answer now.
//!
//! Reads are always fresh (the SQL contract §6): a table is used again only while the dispatcher can
//! tell that another call would answer the same, because nothing that the operation read has changed.

use std::sync::{Arc, Mutex, PoisonError};

use super::operations::{Arguments, OpAddress};
use super::table::Table;

/// Tables that are kept, however small they are: each is looked at to find one.
const MOST: usize = 512;

type Fresh = Arc<dyn Fn() -> bool + Send + Sync>;

/// Tables of calls that would answer the same again.
pub struct TableCache {
    /// Bytes that all tables may take together.
    capacity: usize,
    /// Latest use last.
    slots: Mutex<Vec<Slot>>,
}

struct Slot {
    address: OpAddress,
    args: Arguments,
    table: Arc<Table>,
    size: usize,
    fresh: Fresh,
}

impl TableCache {
    /// For tables of so many bytes; zero keeps none.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, slots: Mutex::default() }
    }

    /// The table that this call would answer now, if that is known.
    pub fn get(&self, address: &OpAddress, args: &Arguments) -> Option<Arc<Table>> {
        let (table, fresh) = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let at =
                slots.iter().position(|slot| slot.address == *address && slot.args == *args)?;
            let slot = slots.remove(at);
            let found = (Arc::clone(&slot.table), Arc::clone(&slot.fresh));
            slots.push(slot);
            found
        };
        // Asked without the lock: it looks at files.
        if fresh() {
            return Some(table);
        }
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|slot| !Arc::ptr_eq(&slot.table, &table));
        None
    }

    /// Keeps a table, in the place of the one before; those longest unused make room.
    pub fn put(&self, address: &OpAddress, args: &Arguments, table: &Arc<Table>, fresh: Fresh) {
        let size = table.size();
        if size > self.capacity {
            return;
        }
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| slot.address != *address || slot.args != *args);
        let mut total = size + slots.iter().map(|slot| slot.size).sum::<usize>();
        while (total > self.capacity || slots.len() >= MOST) && !slots.is_empty() {
            total -= slots.remove(0).size;
        }
        slots.push(Slot {
            address: address.clone(),
            args: args.clone(),
            table: Arc::clone(table),
            size,
            fresh,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::table::Body;
    use super::*;

    fn address(op: &str) -> OpAddress {
        OpAddress { workspace: "_core".to_owned(), project: "p".to_owned(), op: op.to_owned() }
    }

    fn table(rows: usize) -> Arc<Table> {
        let records = (0..rows).map(|n| format!("{{\"n\":{n}}}")).collect();
        Arc::new(Table::new(&[], Body::Records(records)).expect("small"))
    }

    #[test]
    fn a_stale_table_is_never_given() {
        let cache = TableCache::new(1 << 20);
        let current = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&current);
        cache.put(
            &address("a"),
            &Arguments::new(),
            &table(1),
            Arc::new(move || flag.load(Ordering::Relaxed)),
        );
        assert!(cache.get(&address("a"), &Arguments::new()).is_some());
        let other = Arguments::from([("k".to_owned(), "v".to_owned())]);
        assert!(cache.get(&address("a"), &other).is_none());
        current.store(false, Ordering::Relaxed);
        assert!(cache.get(&address("a"), &Arguments::new()).is_none());
        current.store(true, Ordering::Relaxed);
        assert!(cache.get(&address("a"), &Arguments::new()).is_none());
    }

    #[test]
    fn the_longest_unused_makes_room() {
        let one = table(100);
        let cache = TableCache::new(one.size() * 2);
        for op in ["a", "b"] {
            cache.put(&address(op), &Arguments::new(), &table(100), Arc::new(|| true));
        }
        assert!(cache.get(&address("a"), &Arguments::new()).is_some());
        cache.put(&address("c"), &Arguments::new(), &one, Arc::new(|| true));
        assert!(cache.get(&address("a"), &Arguments::new()).is_some());
        assert!(cache.get(&address("b"), &Arguments::new()).is_none());
        cache.put(&address("d"), &Arguments::new(), &table(1_000), Arc::new(|| true));
        assert!(cache.get(&address("d"), &Arguments::new()).is_none());
    }

    #[test]
    fn small_tables_make_room_too() {
        let cache = TableCache::new(1 << 20);
        let args = |n: usize| Arguments::from([("id".to_owned(), n.to_string())]);
        for n in 0..=MOST {
            cache.put(&address("a"), &args(n), &table(0), Arc::new(|| true));
        }
        assert!(cache.get(&address("a"), &args(0)).is_none());
        assert!((1..=MOST).all(|n| cache.get(&address("a"), &args(n)).is_some()));
    }
}
