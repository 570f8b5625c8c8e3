//! Programs of others: an argument vector, no shell, a time limit after which they are killed.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// No program of ours says more than this that we want to know.
const MOST_OUTPUT: u64 = 64 * 1024;

/// How often a program that has closed its output is asked whether it has ended.
const POLL: Duration = Duration::from_millis(2);

/// What a program did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    /// The first 64 KiB; bytes that are not UTF-8 are replaced.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("could not start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("`{program}` did not end within {limit:?} and was killed")]
    TimedOut { program: String, limit: Duration },
    #[error("lost track of `{program}`: {source}")]
    Wait { program: String, source: std::io::Error },
}

/// Runs a program to its end, with nothing on its standard input.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<Outcome, ProcessError> {
    let started = Instant::now();
    let left = || limit.saturating_sub(started.elapsed());
    let timed_out = || ProcessError::TimedOut { program: program.to_owned(), limit };
    // A group of its own, so that whatever it starts is killed with it.
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map(Group)
        .map_err(|source| ProcessError::Start { program: program.to_owned(), source })?;
    let stdout = reader(child.0.stdout.take());
    let stderr = reader(child.0.stderr.take());
    // A reader ends when the last holder of the pipe does, so both may outlast the program itself.
    let text = |said: &mpsc::Receiver<String>| match said.recv_timeout(left()) {
        Ok(text) => Ok(text),
        Err(RecvTimeoutError::Timeout) => Err(timed_out()),
        Err(RecvTimeoutError::Disconnected) => Ok(String::new()),
    };
    let (stdout, stderr) = (text(&stdout)?, text(&stderr)?);
    loop {
        let ended = child.0.try_wait();
        match ended.map_err(|source| ProcessError::Wait { program: program.to_owned(), source })? {
            Some(status) => return Ok(Outcome { status, stdout, stderr }),
            None if left().is_zero() => return Err(timed_out()),
            None => thread::sleep(POLL.min(left())),
        }
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (tell, said) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before a fault counts; the rest is read away, so that the program never blocks on us.
            let _ = pipe.by_ref().take(MOST_OUTPUT).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    said
}

/// A child that is killed with its group if it is still there when nobody waits for it any more.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
                // It has not been waited for, so the number is still its own.
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_come_back() {
        let out = run("sh", &["-c", "printf out; printf err >&2; exit 3"], Duration::from_secs(20))
            .unwrap();
        assert_eq!(
            (out.stdout.as_str(), out.stderr.as_str(), out.status.code()),
            ("out", "err", Some(3))
        );
    }

    #[test]
    fn much_output_is_cut_but_does_not_block() {
        let out =
            run("sh", &["-c", "head -c 300000 /dev/zero | tr '\\0' x"], Duration::from_secs(20))
                .unwrap();
        assert_eq!(out.stdout.len() as u64, MOST_OUTPUT);
        assert!(out.status.success());
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("child");
        let script = format!("sleep 60 & echo $! > '{}'; wait", mark.display());
        let error = run("sh", &["-c", &script], Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, ProcessError::TimedOut { .. }), "{error}");
        let child: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        let gone = || match std::fs::read_to_string(format!("/proc/{child}/stat")) {
            // A zombie waits for its new parent only.
            Ok(stat) => stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
            Err(_) => true,
        };
        while !gone() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run("no-such-program-here", &[], Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("`no-such-program-here`"), "{error}");
    }
}
