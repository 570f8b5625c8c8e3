//! Starts the process in which operations are tried, follows its report, and starts another when an operation ends it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Report;
use crate::check::{Finding, HOME, Rule};
use crate::config::Config;
use crate::error::HostError;

/// A call is asked to stop at its limit; one that does not is given this much more.
const GRACE: Duration = Duration::from_secs(10);
/// What a start of the host may take, on a busy machine too.
const START: Duration = Duration::from_secs(120);
/// Between two looks at the report.
const LOOK: Duration = Duration::from_millis(20);

/// One line of a child's report.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The next operation's turn.
    Begin(String),
    /// What is about to be tried.
    Step(Rule, String),
    /// How a rule fared.
    Found(Finding),
    /// The operation is done.
    End,
}

/// Checks these operations in turn; `tell` gets the report of each when it is done.
pub(super) fn run(
    config: &Config,
    ops: Vec<String>,
    limit: Duration,
    tell: &mut dyn FnMut(Report) -> Result<(), HostError>,
) -> Result<(), HostError> {
    let place = tempfile::Builder::new()
        .prefix("udf-host-check-")
        .tempdir()
        .map_err(|error| HostError::io("create a folder in", std::env::temp_dir(), &error))?;
    let mut left = VecDeque::from(ops);
    let mut number = 0;
    while !left.is_empty() {
        number += 1;
        let folder = place.path().join(number.to_string());
        let before = left.len();
        let ended = one_child(config, &folder, &mut left, limit, tell)?;
        if left.len() == before {
            return Err(HostError::Internal {
                message: "the process that checks ended before it began".to_owned(),
                detail: ended,
            });
        }
    }
    Ok(())
}

/// Starts a child for all that are left; takes off those that it came to. Says how it ended.
fn one_child(
    config: &Config,
    folder: &Path,
    left: &mut VecDeque<String>,
    limit: Duration,
    tell: &mut dyn FnMut(Report) -> Result<(), HostError>,
) -> Result<String, HostError> {
    fs::create_dir_all(folder).map_err(|error| HostError::io("create", folder, &error))?;
    let journal = folder.join("report");
    let file = File::create(&journal).map_err(|error| HostError::io("create", &journal, &error))?;
    drop(file);
    let mut command = command(config, folder, &journal)?;
    command.arg("--limit").arg(limit.as_secs().to_string()).args(&*left.make_contiguous());
    let child = command
        .spawn()
        .map_err(|error| HostError::io("start", PathBuf::from("udf-host check"), &error))?;
    let mut child = Running(child);
    let mut told = Told::open(&journal)?;
    let mut heard = Instant::now();
    let ended = loop {
        let status = child.0.try_wait().map_err(|error| waiting(&error))?;
        if told.read(left, tell)? {
            heard = Instant::now();
        }
        if let Some(status) = status {
            break words(status);
        }
        let patience = if told.has_begun { limit + GRACE } else { START };
        if heard.elapsed() > patience {
            child.0.kill().map_err(|error| waiting(&error))?;
            child.0.wait().map_err(|error| waiting(&error))?;
            told.read(left, tell)?;
            let patience = patience.as_secs();
            break format!("it did not return within {patience} s, though it was asked to stop");
        }
        sleep(LOOK);
    };
    if let Some((op, mut findings, (rule, what))) = told.current.take() {
        findings.retain(|finding: &Finding| finding.rule != rule);
        findings.push(Finding::of(rule, vec![format!("{what}: {ended}")], 0));
        tell(Report::new(op, findings))?;
    }
    Ok(ended)
}

/// A child that does not outlive this command, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // It is ours and it runs: neither can fail in a way that could be helped.
            let _ended = self.0.kill().and_then(|()| self.0.wait());
        }
    }
}

/// What a child has reported.
struct Told {
    file: File,
    /// What is read and no whole line yet.
    rest: Vec<u8>,
    has_begun: bool,
    /// The operation whose turn it is, what was found of it, and what is being tried.
    current: Option<(String, Vec<Finding>, (Rule, String))>,
    path: PathBuf,
}

impl Told {
    fn open(path: &Path) -> Result<Self, HostError> {
        let file = File::open(path).map_err(|error| HostError::io("read", path, &error))?;
        Ok(Self { file, rest: Vec::new(), has_begun: false, current: None, path: path.to_owned() })
    }

    /// Takes what is new. Whether there was anything.
    fn read(
        &mut self,
        left: &mut VecDeque<String>,
        tell: &mut dyn FnMut(Report) -> Result<(), HostError>,
    ) -> Result<bool, HostError> {
        let read = self.file.read_to_end(&mut self.rest);
        let count = read.map_err(|error| HostError::io("read", &self.path, &error))?;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.rest.split_off(end);
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = serde_json::from_slice(line).map_err(|error| HostError::Internal {
                message: "the process that checks reports what cannot be read".to_owned(),
                detail: error.to_string(),
            })?;
            self.take(line, left, tell)?;
        }
        Ok(count > 0)
    }

    fn take(
        &mut self,
        line: Line,
        left: &mut VecDeque<String>,
        tell: &mut dyn FnMut(Report) -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        match (line, &mut self.current) {
            (Line::Begin(op), current) => {
                self.has_begun = true;
                left.retain(|other| *other != op);
                *current = Some((op, Vec::new(), (Rule::Loads, "its start".to_owned())));
            }
            (Line::Step(rule, what), Some((_, _, step))) => *step = (rule, what),
            (Line::Found(finding), Some((_, findings, _))) => findings.push(finding),
            (Line::End, current) => {
                if let Some((op, findings, _)) = current.take() {
                    tell(Report::new(op, findings))?;
                }
            }
            (Line::Step(..) | Line::Found(_), None) => {}
        }
        Ok(())
    }
}

/// The same program, over the same folders, in surroundings of its own.
fn command(config: &Config, folder: &Path, journal: &Path) -> Result<Command, HostError> {
    let program = std::env::current_exe()
        .map_err(|error| HostError::io("find", PathBuf::from("udf-host"), &error))?;
    let mut command = Command::new(program);
    for (flag, paths) in [("--udfs", &config.udfs), ("--plugins", &config.plugins)] {
        for path in paths {
            command.arg(flag).arg(path);
        }
    }
    if config.only {
        command.arg("--only");
    }
    command.args(["--no-build", "--log", "off", "check", "--report"]).arg(journal);
    let place = folder.join("calls");
    command.arg("--place").arg(&place);
    let home = place.join(HOME);
    fs::create_dir_all(&home).map_err(|error| HostError::io("create", &home, &error))?;
    // What an operation asks its surroundings for leads to the folder of the check, and no key or token of the
    // person who checks is there. What cargo and its homes are called decides whether an artifact is still current.
    command.env_clear();
    let kept = |name: &str| {
        matches!(name, "PATH" | "LANG" | "TZ" | "TMPDIR" | "LD_LIBRARY_PATH")
            || ["CARGO", "RUST"].iter().any(|prefix| name.starts_with(prefix))
    };
    let is_secret = |name: &str| name.contains("TOKEN") || name.contains("REGISTR");
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| kept(name) && !is_secret(name)) {
            command.env(name, value);
        }
    }
    // rustup's folder, when it is only found through the home folder, which is another one there.
    let rustup = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup"));
    if std::env::var_os("RUSTUP_HOME").is_none()
        && let Some(rustup) = rustup.filter(|rustup| rustup.is_dir())
    {
        command.env("RUSTUP_HOME", rustup);
    }
    command.env("UDF_HOST_CACHE", &config.cache_dir).env("HOME", &home);
    command.env("OPENFUSED_APP_DIR_STATE", home.join("state")).env("RUN_FEEDBACK_POSTER", "none");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

fn waiting(error: &io::Error) -> HostError {
    HostError::io("wait for", PathBuf::from("udf-host check"), error)
}

fn words(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("it ended the whole process with signal {signal}"),
        None => {
            format!("it ended the whole process with status {}", status.code().unwrap_or_default())
        }
    }
}
