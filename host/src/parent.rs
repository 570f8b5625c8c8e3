//! [`Parent`]: notices that the process which started this one is gone.
//!
//! Not by `PR_SET_PDEATHSIG`: that signal comes when the *thread* that started us ends, which in a client with
//! worker threads is long before the process does. Instead the kernel's handle of the parent is watched, and our own
//! parent id, which changes when the parent ends; and a pipe on standard input, which a parent that ends closes.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, PidfdFlags, getpid, getppid, getsid, pidfd_open};

/// Between two looks at our parent id: the bound for how late we notice without a handle.
const LOOK: Duration = Duration::from_millis(500);

/// The process that started this one.
#[derive(Debug)]
pub(crate) struct Parent {
    id: Option<Pid>,
    handle: Option<OwnedFd>,
    /// It was gone before we could look.
    adopted: bool,
}

impl Parent {
    /// The parent as it is now; to be asked for before anything else is done.
    pub(crate) fn now() -> Parent {
        let id = getppid();
        // `handle` could be of a stranger who got the id meanwhile; then `is_gone` sees that our parent changed.
        let handle = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        Parent { id, handle, adopted: id.is_some_and(is_adopted) }
    }

    /// Calls `gone` once, from a thread of its own, when the parent has ended, with the words for the log.
    pub(crate) fn watch(self, gone: impl Fn(&str) + Send + Sync + 'static) {
        let gone = Arc::new(gone);
        let theirs = Arc::clone(&gone);
        spawn(move || {
            while !self.is_gone() {
                self.wait();
            }
            theirs("the parent process is gone");
        });
        if stdin_is_a_pipe() {
            spawn(move || {
                let mut unread = [0; 1024];
                let mut stdin = io::stdin().lock();
                // What a parent writes there means nothing to us; that it can no longer write does.
                while !matches!(stdin.read(&mut unread), Ok(0) | Err(_)) {}
                gone("standard input was closed");
            });
        }
    }

    fn is_gone(&self) -> bool {
        let Some(id) = self.id else { return false }; // Of another namespace: only standard input can tell.
        self.adopted || getppid() != Some(id)
    }

    fn wait(&self) {
        let Some(handle) = &self.handle else { return std::thread::sleep(LOOK) };
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        let mut ended = [PollFd::new(handle, PollFlags::IN)];
        match poll(&mut ended, Some(&look)) {
            // It ended, and in a moment the kernel gives us our new parent.
            Ok(1..) => std::thread::sleep(Duration::from_millis(5)),
            Ok(0) => {}
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Whether the process that is our parent now only took us in: a child is in its parent's session unless it leads one
/// of its own. (When process 1 of a container is the true parent, the kernel ends us with it.)
fn is_adopted(parent: Pid) -> bool {
    let own = getsid(None).ok();
    own != Some(getpid()) && getsid(Some(parent)).ok() != own
}

fn stdin_is_a_pipe() -> bool {
    fstat(io::stdin().as_fd()).is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
    })
}

fn spawn(watch: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name("parent".to_owned()).spawn(watch) {
        tracing::error!(%error, "cannot watch the parent process");
    }
}
