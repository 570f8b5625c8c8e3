//! [`Process`]: a program that outlives the call that started it.
//!
//! Who owns it is on disk, not in memory: its id, the time it started, the boot it belongs to, and a mark in its
//! environment that nobody else has. The record is written before the program starts and completed afterwards, so a
//! host that dies in between finds the program by its mark. A process is signalled only after its start time or its
//! mark has been read again: an id that now belongs to somebody else is left alone. And it runs under a lease:
//! when no host ever comes back, it ends by itself.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sdk::prelude::*;

/// Environment variable that holds the mark.
pub(crate) const MARK: &str = "LIVING_UI_RUN";
/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at something that is expected to change.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

// SAFETY: the signature is that of POSIX `kill` on Linux, where `pid_t` and `int` have 32 bits; it takes plain
// numbers and touches no memory of ours, so every call is sound.
unsafe extern "C" {
    safe fn kill(pid: i32, signal: i32) -> i32;
}

/// What is on disk about a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// `None` between the decision to start it and its start.
    pub(crate) pid: Option<i32>,
    /// Start time in ticks since boot.
    start: u64,
    boot: String,
    pub(crate) mark: String,
    pub(crate) port: u16,
}

/// What is to be started.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) directory: &'a str,
    /// File that takes what it prints, made anew.
    pub(crate) log: &'a str,
    /// After this it is ended, whatever happens.
    pub(crate) lease: Duration,
}

impl Process {
    /// One that is about to be started; its record is to be written first.
    pub(crate) fn planned(ctx: &Context, port: u16) -> Self {
        Self { pid: None, start: 0, boot: boot(), mark: ctx.uuid(), port }
    }

    /// Reads a record; `None` for one that is not ours to read.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let value: Value = text.parse().ok()?;
        Some(Self {
            pid: value["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()),
            start: value["start"].as_u64()?,
            boot: value["boot"].as_str()?.to_owned(),
            mark: value["mark"].as_str().filter(|mark| mark.len() == 32)?.to_owned(),
            port: value["port"].as_u64().and_then(|port| u16::try_from(port).ok())?,
        })
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({"pid": self.pid, "start": self.start, "boot": self.boot, "mark": self.mark, "port": self.port})
    }

    /// Starts the program in a group of its own, without a terminal and without the host's environment.
    ///
    /// # Errors
    /// It cannot be started; the text names the program.
    pub(crate) fn start(self, start: &Start<'_>) -> Result<Self, String> {
        let mut child = command(start, &self.mark)?
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", start.argv[0]))?;
        let pid = i32::try_from(child.id()).map_err(|_| "a process id out of range".to_owned())?;
        // Nobody else waits for it, and a process nobody waits for stays as a zombie while the host lives.
        thread::Builder::new()
            .name("living-ui-reaper".to_owned())
            .spawn(move || child.wait())
            .map_err(|error| format!("nobody can wait for `{}`: {error}", start.argv[0]))?;
        // One that has ended already has no start time; it reads as dead from now on.
        Ok(Self { pid: Some(pid), start: stat(pid).map_or(0, |stat| stat.start), ..self })
    }

    /// The ids of everything that belongs to it and lives.
    pub(crate) fn members(&self) -> Vec<i32> {
        if self.boot != boot() {
            return Vec::new();
        }
        let mut members = marked(&self.mark);
        members.extend(self.pid.filter(|pid| self.is_leader(*pid) && !members.contains(pid)));
        members
    }

    pub(crate) fn is_running(&self) -> bool {
        match self.pid {
            Some(pid) => self.boot == boot() && self.is_leader(pid),
            None => !self.members().is_empty(),
        }
    }

    /// The record with the id that was not written, when the host died right after the start.
    pub(crate) fn found(self) -> Option<Self> {
        match self.pid {
            Some(_) => self.is_running().then_some(self),
            None => {
                let oldest =
                    self.members().into_iter().min_by_key(|pid| stat(*pid).map(|s| s.start))?;
                let start = stat(oldest)?.start;
                Some(Self { pid: Some(oldest), start, ..self })
            }
        }
    }

    fn is_leader(&self, pid: i32) -> bool {
        stat(pid).is_some_and(|stat| stat.start == self.start && stat.lives)
    }

    /// Start time in ticks, for whoever watches it.
    pub(crate) fn started(&self) -> u64 {
        self.start
    }

    /// Ends it with everything it started. True when nothing of it is left.
    pub(crate) fn end(&self) -> bool {
        let until = Instant::now() + GRACE;
        for pid in self.members() {
            self.signal(pid, SIGTERM);
        }
        while !self.members().is_empty() {
            if Instant::now() >= until {
                for pid in self.members() {
                    self.signal(pid, SIGKILL);
                }
                let until = Instant::now() + GRACE;
                while !self.members().is_empty() && Instant::now() < until {
                    thread::sleep(LOOK);
                }
                return self.members().is_empty();
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Signals a member, once more known to be one.
    fn signal(&self, pid: i32, signal: i32) {
        if is_marked(pid, &self.mark) || (self.pid == Some(pid) && self.is_leader(pid)) {
            // It may have ended between the look and the signal: then there is nobody to hear it.
            let _gone = kill(pid, signal);
        }
    }
}

/// A command line under a lease, marked, its output in a file.
pub(crate) fn command(start: &Start<'_>, mark: &str) -> Result<Command, String> {
    if start.argv.is_empty() {
        return Err("a command is empty".to_owned());
    }
    let log = File::create(start.log)
        .and_then(|out| Ok((out.try_clone()?, out)))
        .map_err(|error| format!("cannot write {}: {error}", start.log))?;
    // `timeout` belongs to every system that has a shell, and ends the program when no host is left to.
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", &start.lease.as_secs().max(1).to_string()]);
    command.args(start.argv).current_dir(start.directory);
    command.env_clear();
    for name in ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(start.env.iter().map(|(name, value)| (name, value))).env(MARK, mark);
    command.stdin(Stdio::null()).stdout(log.0).stderr(log.1).process_group(0);
    Ok(command)
}

/// Ends whatever still carries the mark, at once.
pub(crate) fn end_marked(mark: &str) {
    let until = Instant::now() + GRACE;
    loop {
        let left = marked(mark);
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        for pid in left {
            if is_marked(pid, mark) {
                let _gone = kill(pid, SIGKILL);
            }
        }
        thread::sleep(LOOK);
    }
}

struct Stat {
    start: u64,
    lives: bool,
}

/// What the kernel says of a process; `None` when there is none.
fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields behind it are plain.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Stat { start: fields.nth(18)?.parse().ok()?, lives: !matches!(state, "Z" | "X" | "x") })
}

/// Ids of the living processes that carry the mark.
fn marked(mark: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_marked(*pid, mark)).collect()
}

fn is_marked(pid: i32, mark: &str) -> bool {
    // Of somebody else's process the environment cannot be read; that of a zombie is empty.
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ.split(|byte| *byte == 0).any(|entry| {
            entry.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
                == Some(mark.as_bytes())
        })
    })
}

/// The boot this is: ids and start times of another one mean nothing.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use sdk::testing::TestHost;

    use super::*;
    use crate::UDF;

    fn start<'a>(argv: &'a [String], directory: &'a str, log: &'a str) -> Start<'a> {
        Start { argv, env: &[], directory, log, lease: Duration::from_secs(300) }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn wait_until(what: &str, condition: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < until, "{what}");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_program_is_found_again_and_ended_with_its_children() {
        let host = TestHost::new();
        let directory = host.app_dir().to_str().unwrap();
        let log = format!("{directory}/log");
        // A grandchild in a session of its own, that ignores the polite signal.
        let argv = words(&[
            "sh",
            "-c",
            "(trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 300') & sleep 300",
        ]);
        let planned = Process::planned(&host.context(UDF), 7);
        assert!(!planned.is_running());
        let started = planned.clone().start(&start(&argv, directory, &log)).unwrap();
        let read = Process::read(&started.to_value().to_string()).unwrap();
        assert_eq!(read, started);
        assert!(read.is_running());
        // The host died before it wrote down the id.
        let found = planned.found().unwrap();
        assert!(found.is_running());
        wait_until("children run", || found.members().len() >= 4);
        assert!(found.end());
        assert!(!started.is_running() && marked(&started.mark).is_empty());
    }

    #[test]
    fn a_foreign_process_is_left_alone() {
        let host = TestHost::new();
        let mut foreign = Command::new("sleep").arg("300").spawn().unwrap();
        let pid = i32::try_from(foreign.id()).unwrap();
        let known = stat(pid).unwrap().start;
        let planned = Process::planned(&host.context(UDF), 7);
        // Its id was given to somebody else; or the machine was started anew and everything fits by chance.
        for record in [
            Process { pid: Some(pid), start: known - 1, ..planned.clone() },
            Process { pid: Some(pid), start: known, boot: "another".into(), ..planned },
        ] {
            assert!(!record.is_running() && record.members().is_empty());
            assert!(record.clone().found().is_none());
            assert!(record.end(), "there is nothing to end");
            assert!(foreign.try_wait().unwrap().is_none(), "{record:?}");
        }
        foreign.kill().unwrap();
        foreign.wait().unwrap();
    }

    #[test]
    fn a_lease_ends_a_program_that_nobody_ends() {
        let host = TestHost::new();
        let directory = host.app_dir().to_str().unwrap();
        let log = format!("{directory}/log");
        let argv = words(&["sleep", "300"]);
        let start = Start { lease: Duration::from_secs(1), ..start(&argv, directory, &log) };
        let started = Process::planned(&host.context(UDF), 7).start(&start).unwrap();
        wait_until("the lease is over", || !started.is_running());
        assert!(marked(&started.mark).is_empty());
    }

    #[test]
    fn secrets_of_the_host_stay_with_it() {
        let host = TestHost::new();
        let directory = host.app_dir().to_str().unwrap();
        let log = format!("{directory}/log");
        let argv = words(&["env"]);
        let env = [("SHOWN".to_owned(), "yes".to_owned())];
        let start = Start { env: &env, ..start(&argv, directory, &log) };
        let started = Process::planned(&host.context(UDF), 7).start(&start).unwrap();
        wait_until("it ended", || !started.is_running());
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("SHOWN=yes") && text.contains(MARK), "{text}");
        assert!(!text.contains("CARGO"), "{text}");
    }

    #[test]
    fn records_that_are_none() {
        for text in
            ["", "{}", "[1]", r#"{"pid": 1, "start": 2, "boot": "x", "mark": "short", "port": 1}"#]
        {
            assert_eq!(Process::read(text), None, "{text}");
        }
    }
}
