//! [`Wear`]: how much of what a worker may take has been left behind in it.
//!
//! Operations leak: files that they open and never close, memory, threads. A worker in which little is left is replaced
//! between two calls, before one of them fails for want of it.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

use crate::processes::data_pages;

/// How much of what a worker may take has been left behind in it.
#[derive(Debug)]
pub(super) struct Wear {
    /// When a descriptor this high is the lowest that is free, half of all are taken.
    many_files: RawFd,
    /// Seven eighths of the memory that it may have, in pages.
    much_memory: u64,
    /// What the system says of its memory; none where it does not.
    memory: Option<File>,
}

impl Wear {
    /// `memory` is how many bytes the worker may have.
    pub(super) fn new(memory: u64) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self {
            many_files: RawFd::try_from(files / 2).unwrap_or(RawFd::MAX),
            much_memory: memory / 8 * 7 / page_size() as u64,
            memory: File::open("/proc/self/statm").ok(),
        }
    }

    /// Whether a fresh worker had better take the next call. Costs a microsecond or two.
    pub(super) fn is_worn(&self, any: &OwnedFd) -> bool {
        self.has_many_files(any) || self.has_much_memory()
    }

    fn has_many_files(&self, any: &OwnedFd) -> bool {
        match fcntl_dupfd_cloexec(any, 0) {
            Ok(lowest) => lowest.as_raw_fd() >= self.many_files,
            Err(error) => error == Errno::MFILE,
        }
    }

    fn has_much_memory(&self) -> bool {
        let mut text = [0; 128];
        let read = self.memory.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = str::from_utf8(&text[..read.unwrap_or_default()]).unwrap_or_default();
        data_pages(text).is_some_and(|pages| pages >= self.much_memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_seen() {
        let any = OwnedFd::from(File::open("/dev/null").unwrap());
        let fresh = Wear::new(1 << 40);
        assert!(!fresh.is_worn(&any));
        assert!(Wear { many_files: 0, ..Wear::new(1 << 40) }.is_worn(&any));
        assert!(Wear::new(8 << 10).is_worn(&any));
        assert!(!Wear { memory: None, ..Wear::new(8 << 10) }.is_worn(&any), "nobody can tell");
        assert_eq!(data_pages("10 2 3 4 0 77 0\n"), Some(77));
    }
}
