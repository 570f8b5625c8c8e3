//! [`Builder`]: runs cargo in a shadow workspace and tells what comes of it, crate by crate.
//!
//! - `target` is where and how things are built; `messages` is what cargo says.
//! - `running` is a cargo that runs, `steps` what it does right now, `patience` when it is given up.

mod messages;
mod patience;
mod running;
mod steps;
mod target;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::shadow::Shadow;
use super::tool_homes::ToolHomes;
use crate::tether;
use messages::{Line, event, failed, lines, progress};
use patience::{LOOK, Patience, Verdict};

pub(crate) use messages::Event;
pub(crate) use patience::Stopped;
pub(crate) use running::Running;
pub(crate) use steps::Step;
pub(crate) use target::Target;

/// The most bytes that are kept of what cargo says beside its messages.
const SAID: usize = 64 << 10;

/// The cargo that started us, so that it is the same one, else the one in the path.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO")
        .filter(|path| Path::new(path).is_file())
        .unwrap_or_else(|| "cargo".into())
}

/// Whether a cargo that started us says by this variable which package it started. Build scripts that look at such
/// variables would run anew, with all that depends on them, whenever somebody else calls cargo.
fn is_about_a_package(variable: &OsStr) -> bool {
    let variable = variable.to_string_lossy();
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_TARGET_TMPDIR", "OUT_DIR"]
        .iter()
        .any(|start| variable.starts_with(start))
}

/// How a build ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Whether cargo came as far as building. If not, a manifest or the resolution of dependencies is at fault.
    pub(crate) began: bool,
    /// Whether everything was built.
    pub(crate) success: bool,
    /// What cargo said beside its messages, without progress.
    pub(crate) said: String,
    /// Why it was ended before it was done, if it was.
    pub(crate) stopped: Option<Stopped>,
    /// Its status; none when it was never started, since the host is ending.
    status: Option<ExitStatus>,
}

impl Ended {
    /// What cargo said, or how it ended if it said nothing.
    pub(crate) fn words(&self) -> String {
        if !self.said.trim().is_empty() {
            return self.said.clone();
        }
        // Whoever starts cargo for us passes a signal on as shells do.
        match self.status.map(|status| (status, status.code().unwrap_or_default())) {
            Some((_, code @ 129..)) => {
                format!("cargo said nothing and ended by signal {}", code - 128)
            }
            Some((status, _)) => format!("cargo said nothing and ended with {status}"),
            None => "cargo was not started".to_owned(),
        }
    }
}

/// Builds crates of a shadow.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) shadow: &'a Shadow,
    pub(crate) target: &'a Target,
    pub(crate) running: &'a Running,
    /// What one step of a build may take.
    pub(crate) limit: Duration,
}

/// Whether there is more to come of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Awaited,
    /// Others are awaited more than what is left of it.
    Others,
    /// It is done, and others are built after it.
    Next,
    Nothing,
}

impl Builder<'_> {
    /// Builds the packages; `tell` hears each event as it comes and says whether more is awaited.
    pub(crate) fn build(
        &self,
        packages: &[&str],
        tell: impl FnMut(Event) -> More,
    ) -> io::Result<Ended> {
        let mut command = self.cargo("build");
        command.args(["--message-format=json", "--keep-going", "--lib"]);
        self.name_profile(&mut command);
        // The host is named beside the plugins so that the crates they share get the features they have in the
        // checkout: alone, plugins would build them all a second time.
        command.args(["-p", "host"]);
        for package in packages {
            command.args(["-p", package]);
        }
        self.run(&mut command, tell)
    }

    /// Makes cargo forget what it built of these packages. It tells by the times of files whether it is still right, and
    /// cannot see that other files with older times have taken their places.
    pub(crate) fn forget(&self, packages: &[&str]) -> io::Result<Ended> {
        let mut command = self.cargo("clean");
        self.name_profile(&mut command);
        for package in packages {
            command.args(["-p", package]);
        }
        self.run(&mut command, |_| More::Awaited)
    }

    /// What cargo says against this workspace when it is asked to resolve it. Nothing as well when it was stopped before
    /// it could say.
    pub(crate) fn complaint(&self) -> io::Result<Option<String>> {
        let mut command = self.cargo("metadata");
        command.arg("--format-version=1").stdout(Stdio::null());
        let ended = self.run(&mut command, |_| More::Awaited)?;
        let undecided = ended.success || ended.stopped.is_some() || self.running.is_stopped();
        Ok((!undecided).then(|| ended.words()))
    }

    fn name_profile(&self, command: &mut Command) {
        command.args(["--profile", &self.target.profile]);
        if let Some(triple) = &self.target.triple {
            command.args(["--target", triple]);
        }
    }

    fn run(&self, command: &mut Command, mut tell: impl FnMut(Event) -> More) -> io::Result<Ended> {
        let mut ended = Ended::default();
        let Some(started) = self.running.start(command)? else { return Ok(ended) };
        let mut patience = Patience::new(self.limit, started.session);
        let lines = lines(started.stdout, started.stderr);
        let mut left_early = false;
        loop {
            let heard = match lines.recv_timeout(LOOK) {
                Ok(Line::Message(text)) => {
                    ended.began = true;
                    event(&text)
                }
                Ok(Line::Said(text)) => {
                    let event = progress(&text);
                    if event.is_none() && ended.said.len() < SAID {
                        ended.said.push_str(&text);
                        ended.said.push('\n');
                    }
                    event.or_else(|| failed(&text))
                }
                Err(RecvTimeoutError::Timeout) => Some(Event::Silence),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match &heard {
                Some(Event::Waiting { .. }) => patience.is_blocked(),
                Some(Event::Built { .. } | Event::Compiling { .. } | Event::Step) => {
                    patience.came_further();
                }
                Some(Event::Error { .. } | Event::Failed { .. } | Event::Silence) | None => {}
            }
            match heard.map(&mut tell) {
                Some(More::Nothing) => patience.is_done(false),
                Some(More::Next) => patience.is_done(true),
                Some(More::Others) => {
                    ended.stopped = Some(Stopped::ForOthers);
                    self.running.kill();
                    break;
                }
                Some(More::Awaited) | None => {}
            }
            match patience.judge(self.running.has_changes()) {
                Verdict::GoOn => {}
                Verdict::Enough => {
                    left_early = true;
                    self.running.kill();
                    break;
                }
                Verdict::Stop(why) => {
                    ended.stopped = Some(why);
                    self.running.kill();
                    break;
                }
            }
        }
        ended.status = self.running.end()?;
        ended.success = left_early || ended.status.is_some_and(|status| status.success());
        if !ended.began {
            let kind = match ended.status.and_then(|status| status.code()) {
                Some(tether::NOT_FOUND) => io::ErrorKind::NotFound,
                Some(tether::NOT_STARTED) => io::ErrorKind::Other,
                _ => return Ok(ended),
            };
            return Err(io::Error::new(kind, ended.words().trim().to_owned()));
        }
        Ok(ended)
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut command = tether::command(&cargo());
        ToolHomes::find().name_to(&mut command);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_a_package(name)) {
            command.env_remove(name);
        }
        command
            .arg(verb)
            .current_dir(self.shadow.root())
            .env("CARGO_TARGET_DIR", &self.target.folder)
            .env("CARGO_TERM_COLOR", "never")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
