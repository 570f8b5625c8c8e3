//! What a worker has started: its children, and everything in its process group.

use std::fs;

use rustix::process::Pid;

/// Whether a process has children right now; none if that cannot be told.
pub(super) fn has_children(pid: Pid) -> Option<bool> {
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
pub(super) fn is_ending(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| is_ending_by(&stat))
}

/// The state, and the bit for it among the flags, which are the ninth field.
fn is_ending_by(stat: &str) -> bool {
    const ENDING: u64 = 4;
    let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
    let fields: Vec<&str> = fields.split(' ').collect();
    let flags = fields.get(6).and_then(|flags| flags.parse::<u64>().ok());
    matches!(fields.first(), Some(&"Z" | &"X")) || flags.is_some_and(|flags| flags & ENDING != 0)
}

/// How many processes are in the group that `leader` leads, itself not counted; counts no further than to `most`.
pub(super) fn in_group(leader: Pid, most: usize) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let group = leader.as_raw_nonzero().to_string();
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter(|entry| entry.file_name().as_encoded_bytes() != group.as_bytes())
        .filter(|entry| {
            fs::read_to_string(entry.path().join("stat"))
                .is_ok_and(|stat| group_of(&stat) == Some(&group))
        })
        .take(most)
        .count()
}

/// The process group in a `/proc/<pid>/stat`: the third field after the name, which may hold anything.
fn group_of(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split(' ').nth(2)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_ends_is_known_by_its_state_or_its_flags() {
        for (stat, want) in [
            ("7 (a) S 1 7 7 0 -1 4194304 100", false),
            ("7 (a) S 1 7 7 0 -1 4194308 100", true),
            ("7 (a) Z 1 7 7 0 -1 4194304 100", true),
            ("", false),
        ] {
            assert_eq!(is_ending_by(stat), want, "{stat}");
        }
        assert!(!is_ending(rustix::process::getpid()));
    }

    #[test]
    fn a_group_is_counted_without_its_leader() {
        assert_eq!(group_of("12 (a) b (c) S 1 77 77 0"), Some("77"));
        let script = "sleep 60 & sleep 60 & echo started; wait";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&shell);
        let mut said = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut said).unwrap();
        let (children, group) = (has_children(pid), in_group(pid, 9));
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
        assert_eq!((children.unwrap_or(true), group), (true, 2));
    }
}
