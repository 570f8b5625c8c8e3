//! Which of several folders has an address, or a name of an artifact.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Discovery, FoundOp, Source};
use crate::plugins::catalog::Problem;
use crate::plugins::crate_folder;
use crate::plugins::refusal::Refusal;
use crate::plugins::roots::Root;

/// Decides who has what several folders claim.
pub(super) fn settle(roots: &[Root], found: &mut Discovery) {
    settle_operations(roots, found);
    settle_libraries(found);
}

/// Decides who has an address or artifact name that several folders claim. Folders that were named by the user, or
/// that lie in one root, refuse each other; an implied root gives way to every root before it.
fn settle_operations(roots: &[Root], found: &mut Discovery) {
    let mut given_way: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut claims: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, op) in found.ops.iter().enumerate() {
        // Folders that have an address in common have this in common too, as have `a-b` and `a_b`.
        let key = format!("udf-{}-{}", op.address.project, op.address.op);
        claims.entry(crate_folder::lib_name(&key)).or_default().push(at);
    }
    let mut gone = Vec::new();
    for claimants in claims.into_values().filter(|claimants| claimants.len() > 1) {
        let first_root = found.ops[claimants[0]].root;
        let (staying, giving_way): (Vec<_>, Vec<_>) = claimants.into_iter().partition(|at| {
            let root = found.ops[*at].root;
            root == first_root || roots[root].named
        });
        for at in giving_way {
            let op = &found.ops[at];
            given_way
                .entry(op.root)
                .or_default()
                .push(format!("{}.{}", op.address.project, op.address.op));
            gone.push(at);
        }
        if staying.len() > 1 {
            let files: Vec<PathBuf> =
                staying.iter().map(|at| found.ops[*at].folder.clone()).collect();
            for at in &staying {
                found.ops[*at].source = Err(clash(&found.ops, &staying, *at, &files));
            }
        }
    }
    gone.sort_unstable();
    for at in gone.into_iter().rev() {
        found.ops.remove(at);
    }
    for (root, ops) in given_way {
        found.problems.push(Problem {
            place: roots[root].path.clone(),
            reason: format!(
                "{} of its operations are served from a folder before it: {}",
                ops.len(),
                ops.join(", ")
            ),
            remedy: "nothing, if that is meant; --only leaves this folder out".to_owned(),
        });
    }
}

/// A library gives way to one of its name in a root before its own: cargo takes no two packages of one name. Whatever is
/// built from it cannot be.
fn settle_libraries(found: &mut Discovery) {
    let mut taken: BTreeMap<String, (usize, PathBuf)> = BTreeMap::new();
    let mut gone: BTreeMap<PathBuf, (String, PathBuf)> = BTreeMap::new();
    found.libraries.retain(|library| {
        // One without a name is cargo's to complain about.
        let Some(name) = crate_folder::package_of(&library.folder) else { return true };
        match taken.get(&name) {
            Some((root, first)) if *root != library.root => {
                let folder = library.folder.canonicalize();
                let folder = folder.unwrap_or_else(|_| library.folder.clone());
                gone.insert(folder, (name, first.clone()));
                false
            }
            Some(_) => true,
            None => {
                taken.insert(name, (library.root, library.folder.clone()));
                true
            }
        }
    });
    if gone.is_empty() {
        return;
    }
    for op in found.ops.iter_mut().filter(|op| matches!(op.source, Ok(Source::Crate { .. }))) {
        let needs = crate_folder::path_dependencies(&op.folder);
        let Some((folder, (name, first))) = gone.iter().find(|(folder, _)| needs.contains(*folder))
        else {
            continue;
        };
        let mut refusal = Refusal::new(
            format!(
                "it needs the library `{name}`, and a folder before this one has another of that name"
            ),
            "rename one of the two packages, or leave one of the folders out",
        );
        refusal.files = vec![folder.clone(), first.clone()];
        op.source = Err(refusal);
    }
}

fn clash(ops: &[FoundOp], staying: &[usize], at: usize, files: &[PathBuf]) -> Box<Refusal> {
    let own = &ops[at].address;
    let same =
        staying.iter().filter(|other| **other != at).all(|other| ops[*other].address == *own);
    let reason = if same {
        format!("{} folders claim the operation `{}.{}`", staying.len(), own.project, own.op)
    } else {
        let names: Vec<String> = staying
            .iter()
            .map(|at| format!("`{}.{}`", ops[*at].address.project, ops[*at].address.op))
            .collect();
        format!("{} would have one artifact name between them", names.join(" and "))
    };
    let mut refusal = Refusal::new(reason, "rename all but one of the folders, or remove them");
    refusal.files = files.to_vec();
    refusal
}
