//! The processes around a host, as `/proc` shows them.

use std::fs;

/// The workers of the host with this id.
pub(crate) fn workers(host: u32) -> Vec<u32> {
    children(host)
        .into_iter()
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"udf-host\0worker\0")
        })
        .collect()
}

/// The children of the process with this id, the dead that nobody has taken leave of included.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let names = fs::read_dir("/proc").unwrap().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter(|pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may hold anything, come the state and the parent.
        let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(&*parent)
    })
    .collect()
}

/// Memory of the process with this id, in MiB; none when it is gone.
pub(crate) fn resident_mib(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096.0 / f64::from(1 << 20))
}
