//! A switch for tests of crashes: a host that ends itself by SIGKILL at the n-th change of the disk. It is compiled
//! into builds with debug assertions alone; release builds know nothing of it.
//!
//! `UDF_HOST_TEST_KILL_AT_CHANGE=7` dies before the seventh change since the start, `7+` in the middle of it if it is a
//! write.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use core_store::{Backend, Entry, FileBackend, Held, Stamp, Store, StoreOptions, WriteMode};

/// The switch.
const SWITCH: &str = "UDF_HOST_TEST_KILL_AT_CHANGE";

/// The store of the host: the usual one unless the switch is set.
pub(crate) fn store(options: StoreOptions) -> Store {
    let text = std::env::var(SWITCH).unwrap_or_default();
    let (number, half) = match text.strip_suffix('+') {
        Some(number) => (number, true),
        None => (text.as_str(), false),
    };
    match number.parse() {
        Ok(at) => {
            let disk = FileBackend::default();
            let backend = Mortal { disk, changes: AtomicU64::new(0), at, half };
            Store::with_backend(Arc::new(backend), options)
        }
        Err(_) => Store::open(options),
    }
}

/// A disk under which the process dies.
#[derive(Debug)]
struct Mortal {
    disk: FileBackend,
    changes: AtomicU64,
    at: u64,
    half: bool,
}

impl Mortal {
    /// Counts a change; true if the process is to die in it.
    fn is_last(&self) -> bool {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1 == self.at
    }

    fn count(&self) {
        if self.is_last() {
            die();
        }
    }
}

fn die() -> ! {
    let own = rustix::process::getpid();
    // Nothing of this process runs once it is delivered.
    let _sent = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

impl Backend for Mortal {
    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        self.disk.stamp(path)
    }
    fn is_fresh(&self, stamp: &Stamp) -> bool {
        self.disk.is_fresh(stamp)
    }
    fn read(&self, path: &Path) -> io::Result<Option<(Vec<u8>, Stamp)>> {
        self.disk.read(path)
    }
    fn last_byte(&self, path: &Path) -> io::Result<Option<u8>> {
        self.disk.last_byte(path)
    }
    fn write(&self, path: &Path, parts: &[&[u8]], mode: WriteMode, sync: bool) -> io::Result<()> {
        if self.is_last() {
            if self.half {
                let whole = parts.concat();
                self.disk.write(path, &[&whole[..whole.len() / 2]], mode, sync)?;
            }
            die();
        }
        self.disk.write(path, parts, mode, sync)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.count();
        self.disk.rename(from, to)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<bool> {
        self.count();
        self.disk.rename_new(from, to)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.count();
        self.disk.sync_dir(dir)
    }
    fn remove(&self, path: &Path) -> io::Result<bool> {
        self.count();
        self.disk.remove(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.count();
        self.disk.remove_dir_all(dir)
    }
    fn create_dirs(&self, dir: &Path, sync: bool) -> io::Result<()> {
        self.count();
        self.disk.create_dirs(dir, sync)
    }
    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        self.disk.list(dir)
    }
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_link(path)
    }
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.real_path(path)
    }
    fn lock(&self, path: &Path, wait: Option<Duration>) -> io::Result<Option<Held>> {
        self.disk.lock(path, wait)
    }
}
