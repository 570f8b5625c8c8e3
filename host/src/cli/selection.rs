//! From names on the command line to the operations that are meant: some, or all.

use std::sync::Arc;
use std::time::Instant;

use super::{operation, progress};
use crate::Host;
use crate::error::HostError;
use crate::plugins::Entry;

/// The operations that the names stand for, each once, in the order of their addresses. A name is a project, whose
/// operations are all meant, or an operation as `PROJECT/OP`, `project.op`, `workspace.project.op` or `op`. No names
/// mean every operation.
///
/// # Errors
/// [`HostError::UnknownOp`] and its kin for a name that nothing has.
pub(super) fn select(host: &Host, names: &[String]) -> Result<Vec<Arc<Entry>>, HostError> {
    host.catalog.wait_discovered(Instant::now() + progress::BUILD_TIME);
    let all = host.catalog.entries();
    if names.is_empty() {
        return Ok(all);
    }
    let mut wanted = vec![false; all.len()];
    for name in names {
        let name = name.trim_end_matches('/').replace('/', ".");
        let mut of_project = false;
        for (entry, wanted) in all.iter().zip(&mut wanted) {
            if *entry.address.project == *name {
                (*wanted, of_project) = (true, true);
            }
        }
        if of_project {
            continue;
        }
        let address = operation::find(host, &name)?;
        if let Some(at) = all.iter().position(|entry| entry.address == address) {
            wanted[at] = true;
        }
    }
    Ok(all.into_iter().zip(wanted).filter_map(|(entry, wanted)| wanted.then_some(entry)).collect())
}
