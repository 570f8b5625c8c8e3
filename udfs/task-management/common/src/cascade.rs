//! Removing tasks together with what names them.

use std::collections::HashSet;

use sdk::prelude::*;

/// The id and those of all tasks below it by `parentId`; a circle of parents ends where it began.
/// A child without an id is no part of it (the app-store contract §11, S21).
pub fn family(tasks: &CollectionMut<'_, '_>, id: &str) -> HashSet<String> {
    let mut family = HashSet::from([id.to_owned()]);
    let mut open = vec![id.to_owned()];
    while let Some(parent) = open.pop() {
        for child in tasks.matching("parentId", &parent) {
            let Some(id) = child.str("id") else { continue };
            if family.insert(id.clone().into_owned()) {
                open.push(id.into_owned());
            }
        }
    }
    family
}

/// Removes every record whose `field` is one of these ids; returns how many there were. A collection that
/// holds a falsy value becomes an empty list (the app-store contract §11, S20).
pub fn remove_all(
    collection: &mut CollectionMut<'_, '_>,
    field: &str,
    ids: &HashSet<String>,
) -> usize {
    collection.make_list();
    ids.iter().map(|id| collection.remove_matching(field, id)).sum()
}

/// The ids, sorted by code point.
pub fn sorted(ids: &HashSet<String>) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids
}
