//! What a worker may take.

use std::io;

use rustix::process::{Resource, getuid};

use crate::processes::tasks;
use crate::tether;

/// How many processes and threads the user may have beside those that there are now. It is no quota for this worker (the
/// system counts for a user, and not at all for root); the host counts what a worker starts. It is the last wall for a
/// plugin that multiplies faster than the host can count.
const MORE_TASKS: u64 = 4096;

/// Sets the limits and ties this process to the host with process id `host`.
///
/// # Errors
/// The system refuses; without its limits a worker does not run.
pub(super) fn set(host: u32, memory: u64) -> io::Result<()> {
    tether::end_with(host)?;
    // Of data, not of address space: threads and allocators reserve much that they never touch.
    tether::limit(Resource::Data, memory)?;
    // To abort is nothing special here; writing the memory to disk each time would be.
    tether::limit(Resource::Core, 0)?;
    if !getuid().is_root()
        && let Some(tasks) = tasks()
    {
        tether::limit(Resource::Nproc, tasks + MORE_TASKS)?;
    }
    Ok(())
}
