//! What a process has started: its children, and everything in the session that it leads.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Whether a process has children right now; none if that cannot be told.
pub(crate) fn has_children(pid: Pid) -> Option<bool> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?;
    for thread in threads.flatten() {
        // A thread may have ended since it was listed; its children went to another one then.
        if fs::read_to_string(thread.path().join("children")).is_ok_and(|text| !text.is_empty()) {
            return Some(true);
        }
    }
    // Read once more from the process itself: a kernel without these files has no `children` anywhere.
    let own = format!("/proc/{pid}/task/{pid}/children", pid = pid.as_raw_nonzero());
    fs::read_to_string(own).ok().map(|text| !text.is_empty())
}

/// Whether a process has ended, or is about to: the system has begun to take it apart.
pub(crate) fn is_ending(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| Stat::parse(&stat).is_some_and(|stat| stat.is_ending()))
}

/// Processes and threads of the whole system. Costs next to nothing, and whoever multiplies shows in it.
pub(crate) fn tasks() -> Option<u64> {
    // The fourth field is `running/all`.
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split('/').nth(1)?.parse().ok()
}

/// How many processes are in the session that `leader` leads, itself not counted; counts no further than to `most`.
pub(crate) fn in_session(leader: Pid, most: usize) -> usize {
    session(leader).take(most).count()
}

/// Kills what is in the session of `leader`, except itself: it is the caller, or has ended and not been waited for, so that
/// its number is still its own. Processes that made a group of their own are in it.
pub(crate) fn end_session(leader: Pid) {
    // Whoever forks while this looks is found by the next look; they cannot go on for ever, since each look ends most. One
    // that was killed forks no more, though it may be there for as long as it gets no time to end.
    let mut killed = HashSet::new();
    for _ in 0..100 {
        let found: Vec<Pid> = session(leader).filter(|pid| !killed.contains(pid)).collect();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // It may have ended by itself.
            let _gone = kill_process(pid, Signal::KILL);
            killed.insert(pid);
        }
    }
    tracing::error!(session = leader.as_raw_nonzero(), "what it has started cannot be ended");
}

/// The sixth number of `/proc/<pid>/statm`: data and stacks.
pub(crate) fn data_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(5)?.parse().ok()
}

/// The processes of a session that have not ended, without its leader.
fn session(leader: Pid) -> impl Iterator<Item = Pid> {
    let number = leader.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |pid| *pid != number).filter_map(move |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let stat = Stat::parse(&stat)?;
        (stat.session == number && !stat.is_ending()).then(|| Pid::from_raw(pid))?
    })
}

/// Of a `/proc/<pid>/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    session: i32,
    flags: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // After the name, which may hold anything: state, parent, group, session, terminal, its group, flags.
        let mut fields = text.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        let session = fields.nth(2)?.parse().ok()?;
        let flags = fields.nth(2)?.parse().ok()?;
        Some(Self { state, session, flags })
    }

    fn is_ending(&self) -> bool {
        // `PF_EXITING`.
        const ENDING: u64 = 4;
        matches!(self.state, 'Z' | 'X') || self.flags & ENDING != 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_that_ends_is_known_by_its_state_or_its_flags() {
        for (stat, want) in [
            ("7 (a) b (c) S 1 70 77 0 -1 4194304 100", Some((77, false))),
            ("7 (a) S 1 70 77 0 -1 4194308 100", Some((77, true))),
            ("7 (a) Z 1 70 77 0 -1 4194304 100", Some((77, true))),
            ("", None),
        ] {
            let found = Stat::parse(stat).map(|stat| (stat.session, stat.is_ending()));
            assert_eq!(found, want, "{stat}");
        }
        assert!(!is_ending(rustix::process::getpid()));
        assert!(tasks().is_some_and(|tasks| tasks > 0));
    }

    #[test]
    fn a_session_is_counted_and_ended_without_its_leader() {
        // One of them in a group of its own.
        let script = "sleep 60 & set -m; sleep 60 & echo started; exec sleep 60";
        let mut shell = Command::new("setsid");
        let mut shell = shell
            .args(["sh", "-c", script])
            // So that `setsid` need not fork to become the leader.
            .process_group(rustix::process::getpgrp().as_raw_nonzero().get())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&shell);
        let mut said = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut said).unwrap();
        assert_eq!((has_children(pid).unwrap_or(true), in_session(pid, 9)), (true, 2));
        end_session(pid);
        let deadline = Instant::now() + Duration::from_secs(60);
        while in_session(pid, 9) > 0 {
            assert!(Instant::now() < deadline, "they are still there");
            std::thread::yield_now();
        }
        assert_eq!(shell.try_wait().unwrap(), None, "the leader itself is left alone");
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
