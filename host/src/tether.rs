//! [`command`]: a program that ends with the host, and everything that it has started with it.
//!
//! What a build runs is whatever its authors wrote, and may run for ever. The program is started through the host's own
//! (the hidden command `udf-host tether`), which leads a session of its own and ends all of it when the host ends, also
//! by SIGKILL.

mod bell;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::channel;
use std::{io, thread};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpgrp, getpid, getppid, getrlimit,
    kill_current_process_group, kill_process, kill_process_group, set_parent_process_death_signal,
    setrlimit, setsid, waitid,
};

use crate::processes::end_session;
use crate::program;
use bell::Bell;

/// Exit code when there is no such program, as shells have it.
pub(crate) const NOT_FOUND: i32 = 127;
/// Exit code when it cannot be started.
pub(crate) const NOT_STARTED: i32 = 126;

/// A command that runs the program. In a process that is not the host itself the program is started as it is.
pub(crate) fn command(program: &OsStr) -> Command {
    let mut command = match program::own() {
        None => Command::new(program),
        Some(own) => {
            let mut command = Command::new(own);
            command.arg0("udf-host").arg("tether").arg(std::process::id().to_string());
            command.arg("--").arg(program);
            command
        }
    };
    program::hide_settings(&mut command);
    command
}

/// Runs the program to its end; the exit code to leave with.
///
/// # Errors
/// The system refuses what ties this process to the host.
pub(crate) fn run(host: u32, program: &OsStr, arguments: &[OsString]) -> io::Result<i32> {
    lead_a_group()?;
    end_with(host)?;
    prefer_as_victim();
    limit_memory();
    let status = match Command::new(program).args(arguments).status() {
        Ok(status) => status,
        Err(error) => {
            let code =
                if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
            use std::io::Write;
            // Whoever reads it shows it; nobody else can.
            let _closed = writeln!(io::stderr(), "{}: {error}", program.to_string_lossy());
            return Ok(code);
        }
    };
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

/// Ends what [`command`] started, and waits for its end.
pub(crate) fn end(child: &mut Child) {
    let pid = Pid::from_child(child);
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    if waitid(WaitId::Pid(pid), look).is_err() {
        // Somebody has taken leave of it, and its number may be another's.
        return;
    }
    // It may be gone already; before it leads its group it has started nothing.
    let _itself = kill_process(pid, Signal::KILL);
    let _reaped = bury(child);
}

/// Whether it has ended by itself. It is not taken from the system, so that what it has started can be told from others.
pub(crate) fn has_ended(child: &Child) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), look), Ok(None))
}

/// Waits for the end of what [`command`] started, and ends what that has started in turn.
///
/// # Errors
/// The system cannot tell how it ended.
pub(crate) fn bury(child: &mut Child) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    // While nobody has taken leave of it, its number is its own.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    // There may be none.
    let _group = kill_process_group(pid, Signal::KILL);
    end_session(pid);
    child.wait()
}

/// Makes this process the head of a group, to which whatever it starts belongs and with which it ends; before anything
/// else, since until then it is in the group of the host. A session beside, since the system shares time out between
/// sessions: what many processes of ours take, they take from each other and not from the host.
///
/// # Errors
/// The system refuses.
pub(crate) fn lead_a_group() -> io::Result<()> {
    if getpgrp() != getpid() {
        setsid()?;
    }
    Ok(())
}

/// Ends this process and all that it started when the host with process id `host` ends, or has ended, and on SIGTERM.
///
/// # Errors
/// The system refuses.
pub(crate) fn end_with(host: u32) -> io::Result<()> {
    let bell = Bell::new()?;
    // Not in the signal's handler, which may do little more than ring: to find what is to end takes more.
    stand_by(move || {
        bell.wait();
        end_all();
    })?;
    // SAFETY: to ring is one of the things that signal handlers may do; it neither allocates nor locks.
    unsafe { signal_hook_registry::register(Signal::TERM.as_raw(), move || bell.ring()) }?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if !has_parent(host) {
        // It ended before we asked to be told of its end.
        end_all();
    }
    Ok(())
}

/// Starts a thread that waits for the end of the host, and has begun when this returns: to begin it needs the loader's
/// lock, and whoever opens a library next may never give that back.
///
/// # Errors
/// The system refuses.
pub(crate) fn stand_by(wait: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (up, is_up) = channel();
    let begun = move || {
        let _waited_for = up.send(());
        wait();
    };
    thread::Builder::new().name("tether".to_owned()).spawn(begun)?;
    is_up.recv().map_err(io::Error::other)
}

/// Whether the process that started this one is `host`, and still there.
pub(crate) fn has_parent(host: u32) -> bool {
    getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned()) == Some(host)
}

/// Ends this process and everything that it started, at once.
pub(crate) fn end_all() -> ! {
    // What has made a group of its own first: nobody is left to do it afterwards.
    end_session(getpid());
    loop {
        let _cannot_fail = kill_current_process_group(Signal::KILL);
    }
}

/// No process of a build gets more memory than three quarters of what there is: one that reads a file without end would
/// take all.
fn limit_memory() {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let Some(most) = kib.map(|kib| kib / 4 * 3 * 1024) else { return };
    // Without that the build goes on all the same.
    let _refused = limit(Resource::Data, most);
}

/// Gives this process, and all that it starts, no more of something than `most`, for good.
///
/// # Errors
/// The system refuses.
pub(crate) fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// When memory runs out, the system had better end this process than the host that serves.
#[expect(clippy::disallowed_methods, reason = "a knob of the system, not a file")]
pub(crate) fn prefer_as_victim() {
    // Without that the build goes on all the same.
    let _not_allowed = std::fs::write("/proc/self/oom_score_adj", "500");
}
