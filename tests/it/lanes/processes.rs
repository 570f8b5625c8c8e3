//! What the system tells of processes.

use std::fs;

use rustix::process::Pid;

/// State and group of a process; none when it is gone.
pub(super) fn stat(pid: &str) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    fields.next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Every process in the group that `leader` leads or led, the dead that nobody has taken leave of included.
pub(super) fn group(leader: Pid) -> Vec<String> {
    let leader = leader.as_raw_nonzero().get();
    processes()
        .into_iter()
        .filter(|pid| stat(pid).is_some_and(|(_, group)| group == leader))
        .collect()
}

fn processes() -> Vec<String> {
    let names = fs::read_dir("/proc").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The children of a process by id and state.
pub(super) fn children(parent: Pid) -> Vec<(String, char)> {
    let parent = parent.as_raw_nonzero().to_string();
    let is_child = |pid: &String| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = text.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        fields.split(' ').nth(1) == Some(&parent)
    };
    processes()
        .into_iter()
        .filter(is_child)
        .filter_map(|pid| stat(&pid).map(|(state, _)| (pid, state)))
        .collect()
}
