//! What a worker may take, and how it ends.

use std::io;

use rustix::process::{
    Resource, Rlimit, Signal, getpgrp, getpid, getppid, getuid, kill_current_process_group,
    set_parent_process_death_signal, setrlimit, setsid,
};

/// How many processes and threads the user may have beside those that there are now. It is no quota for this worker (the
/// system counts for a user, and not at all for root); the host counts what a worker starts. It is the last wall for a
/// plugin that multiplies faster than the host can count.
const MORE_TASKS: u64 = 4096;

/// Makes this process the head of a group, to which whatever it starts belongs and with which it ends; before anything
/// else, since until then it is in the group of the host. A session beside, since the system shares time out between
/// sessions: what many processes of ours take, they take from each other and not from the host.
///
/// # Errors
/// The system refuses.
pub(super) fn lead_a_group() -> io::Result<()> {
    if getpgrp() != getpid() {
        setsid()?;
    }
    Ok(())
}

/// Sets the limits and ties this process to the host with process id `host`.
///
/// # Errors
/// The system refuses; without its limits a worker does not run.
pub(super) fn set(host: u32, memory: u64) -> io::Result<()> {
    // SAFETY: the handler makes one system call, which signal handlers may do, and neither allocates nor locks.
    unsafe { signal_hook_registry::register(Signal::TERM.as_raw(), || end()) }?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned()) != Some(host) {
        // It ended before we asked to be told of its end.
        end();
    }
    // Of data, not of address space: threads and allocators reserve much that they never touch.
    limit(Resource::Data, memory)?;
    // To abort is nothing special here; writing the memory to disk each time would be.
    limit(Resource::Core, 0)?;
    if !getuid().is_root()
        && let Some(tasks) = tasks()
    {
        limit(Resource::Nproc, tasks + MORE_TASKS)?;
    }
    Ok(())
}

/// Ends this process and everything that it started, at once.
pub(super) fn end() -> ! {
    loop {
        let _cannot_fail = kill_current_process_group(Signal::KILL);
    }
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Processes and threads of the whole system: the fourth field of `/proc/loadavg` is `running/all`.
fn tasks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split('/').nth(1)?.parse().ok()
}
