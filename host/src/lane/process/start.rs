//! How a worker comes to be.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::end::end;
use super::{Life, Process, Running};
use crate::lane::frames::ToWorker;
use crate::lane::link::Link;
use crate::lane::output::Output;
use crate::plugins::Address;
use crate::program;

/// How a worker is started.
#[derive(Debug, Clone)]
pub(in crate::lane) struct Start {
    /// The program that knows the command `worker`.
    pub(in crate::lane) program: PathBuf,
    /// Bytes of memory it may have.
    pub(in crate::lane) memory: u64,
    /// Whether a write is synced before it is acknowledged.
    pub(in crate::lane) synced: bool,
}

impl Process {
    /// Starts a worker. On a thread that lives as long as the host: the system ends a worker with the thread that
    /// started it.
    ///
    /// # Errors
    /// The system refuses a socket, a pipe, a process.
    pub(in crate::lane) fn start(start: &Start, label: &str) -> io::Result<Self> {
        let (link, theirs) = Link::pair()?;
        let (read, write) = io::pipe()?;
        let note = File::from(memfd_create("udf-host worker", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(&start.program);
        command.arg0("udf-host").args(["worker", label]);
        program::hide_settings(&mut command);
        command.stdin(theirs).stdout(note.try_clone()?).stderr(write);
        let child = command.spawn()?;
        // Our copies of its ends: without them the pipe ends with the worker.
        drop(command);
        let pid = Pid::from_child(&child);
        let mut life = Life {
            child,
            killed: None,
            status: None,
            victims: HashMap::new(),
            idle_since: Instant::now(),
        };
        let followed = || -> io::Result<_> {
            let handle = pidfd_open(pid, PidfdFlags::empty())?;
            let output = Output::default();
            let running = Arc::<Mutex<HashMap<u64, Running>>>::default();
            let names = Arc::clone(&running);
            output.follow(
                OwnedFd::from(read),
                pid.as_raw_nonzero().get().cast_unsigned(),
                move || names_of(&names.lock().unwrap_or_else(PoisonError::into_inner)),
            )?;
            let hello = ToWorker::Hello {
                host: std::process::id(),
                memory: start.memory,
                synced: start.synced,
            };
            // The socket is empty and takes it at once.
            let soon = Instant::now() + Duration::from_secs(1);
            // One that has ended already is buried like any other.
            let _ended = link.send(&hello.encode(0), soon);
            Ok((handle, output, running))
        };
        let (handle, output, running) = match followed() {
            Ok(followed) => followed,
            Err(error) => {
                end(pid);
                let _status = life.child.wait();
                return Err(error);
            }
        };
        Ok(Self {
            link,
            pid,
            handle,
            note,
            memory: start.memory,
            output,
            running,
            next_call: AtomicU64::new(1),
            completed: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            leftovers: AtomicBool::new(false),
            held: Mutex::new(Some(Vec::new())),
            blamed: Mutex::default(),
            life: Mutex::new(life),
            ended: Condvar::new(),
        })
    }
}

/// What runs in a worker, for a line that it prints: one name, or how many.
fn names_of(running: &HashMap<u64, Running>) -> String {
    let names: BTreeSet<&Address> = running.values().map(|call| &call.op).collect();
    match names.into_iter().collect::<Vec<_>>()[..] {
        [] => "none".to_owned(),
        [only] => only.to_string(),
        [first, ..] => format!("{first} or one of {} others", running.len() - 1),
    }
}
