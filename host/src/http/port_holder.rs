//! Who listens on a port: the line that saves the search when a fixed port is taken.

use std::fs;
use std::path::Path;

/// `process 4711 (node)`, if the system tells (another user's processes show no open files).
pub(crate) fn find(port: u16) -> Option<String> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listeners(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let holds = fs::read_dir(process.path().join("fd")).ok()?.flatten().any(|open| {
            fs::read_link(open.path())
                .is_ok_and(|target| sockets.iter().any(|socket| Path::new(socket) == target))
        });
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        holds.then(|| format!("process {pid} ({})", name.trim()))
    })
}

/// Inodes of the sockets that listen on `port`, from a table of `/proc/net`.
fn listeners(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            (local.ends_with(&wanted) && *state == LISTEN).then(|| (*inode).to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_listening_lines_only() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0\n\
            1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 100 0\n\
            2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1 0 100 0\n";
        assert_eq!(listeners(table, 8080), ["4242"]);
    }
}
