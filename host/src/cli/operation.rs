//! From `op`, `project.op` or `workspace.project.op` to the one operation that is meant.

use std::time::Instant;

use super::progress;
use crate::Host;
use crate::error::HostError;
use crate::plugins::Address;

/// Finds the operation among all that were discovered.
///
/// # Errors
/// [`HostError::UnknownName`] and its kin when there is none, [`HostError::BadRequest`] with the candidates when a short
/// name fits several.
pub(super) fn find(host: &Host, name: &str) -> Result<Address, HostError> {
    host.catalog.wait_discovered(Instant::now() + progress::BUILD_TIME);
    if let Some(address) = Address::parse(name) {
        host.catalog.find(&address.workspace, &address.project, &address.op)?;
        return Ok(address);
    }
    let all: Vec<Address> =
        host.catalog.entries().iter().map(|entry| entry.address.clone()).collect();
    choose(&all, name)
}

/// The one of these that a name, short or whole, means.
///
/// # Errors
/// As [`find`].
pub(super) fn choose(all: &[Address], name: &str) -> Result<Address, HostError> {
    if let Some(whole) = Address::parse(name).filter(|whole| all.contains(whole)) {
        return Ok(whole);
    }
    let (project, op) = match name.split_once('.') {
        Some((project, op)) => (Some(project), op),
        None => (None, name),
    };
    let fits = |address: &&Address| {
        &*address.op == op && project.is_none_or(|project| &*address.project == project)
    };
    let mut found = all.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(address), None) => Ok(address.clone()),
        (Some(first), Some(second)) => {
            let names: Vec<String> =
                [first, second].into_iter().chain(found).map(|a| format!("`{a}`")).collect();
            Err(HostError::BadRequest {
                message: format!("`{name}` fits several operations: {}", names.join(", ")),
            })
        }
        (None, _) => {
            Err(HostError::UnknownName { name: name.to_owned(), known: near(all, project, op) })
        }
    }
}

/// What may have been meant, the nearest first: of the project, if there is one of that name.
fn near(all: &[Address], project: Option<&str>, op: &str) -> Vec<String> {
    let within = |address: &&Address| project == Some(&*address.project);
    let mut found: Vec<&Address> = all.iter().filter(within).collect();
    if found.is_empty() {
        found = all.iter().collect();
    }
    found.sort_by_cached_key(|address| strsim::damerau_levenshtein(&address.op, op));
    found.into_iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_must_fit_one_operation() {
        let all = ["_core.a.get", "_core.b.get", "_core.b.list", "x.b.list"]
            .map(|name| Address::parse(name).unwrap());
        for (name, want) in [
            ("a.get", Ok("_core.a.get")),
            ("x.b.list", Ok("x.b.list")),
            ("get", Err("fits several operations: `_core.a.get`, `_core.b.get`")),
            ("b.list", Err("fits several")),
            ("b.none", Err("unknown operation `b.none`")),
            ("none", Err("unknown operation `none`")),
            ("b.lits", Err("known: `_core.b.list`, `x.b.list`, `_core.b.get`")),
            ("lits", Err("known: `_core.b.list`, `x.b.list`, `_core.a.get`")),
            ("c.got", Err("known: `_core.a.get`, `_core.b.get`, `_core.b.list`")),
        ] {
            match (choose(&all, name), want) {
                (Ok(found), Ok(want)) => assert_eq!(found.to_string(), want),
                (Err(error), Err(want)) => assert!(error.to_string().contains(want), "{error}"),
                (found, want) => panic!("{name}: {found:?}, wanted {want:?}"),
            }
        }
    }
}
