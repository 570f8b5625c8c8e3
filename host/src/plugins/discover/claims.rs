//! Which of several folders has an address, or a name of an artifact.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Discovery, FoundOp};
use crate::plugins::catalog::Problem;
use crate::plugins::crate_folder;
use crate::plugins::refusal::Refusal;
use crate::plugins::roots::Root;

/// Decides who has an address or artifact name that several folders claim. Folders that were named by the user, or
/// that lie in one root, refuse each other; an implied root gives way to every root before it.
pub(super) fn settle(roots: &[Root], found: &mut Discovery) {
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
