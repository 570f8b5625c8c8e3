//! [`Builder`]: runs cargo in a shadow workspace and tells what comes of it, crate by crate.
//!
//! Messages are asked for as JSON with the compiler's own included, not as rendered text on stderr: that is what
//! tells whose error an error is.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::Deserialize;

use super::shadow::Shadow;
use super::tool_homes::ToolHomes;

/// Where and how things are built: as the host itself was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The target folder.
    pub(crate) folder: PathBuf,
    /// The profile's name as cargo takes it.
    pub(crate) profile: String,
    /// The target triple, when the host was built with `--target`.
    pub(crate) triple: Option<String>,
}

impl Target {
    /// From the running program if it lies in a target folder, else from where it was built, else from cargo, else
    /// the usual place in the checkout.
    pub(crate) fn find(exe: Option<&Path>, checkout: &Path) -> Self {
        let built = Path::new(BUILT);
        exe.and_then(Self::around).or_else(|| Self::above(built)).unwrap_or_else(|| {
            let folder = target_by_cargo(checkout).unwrap_or_else(|| checkout.join("target"));
            Self { folder, profile: profile_of(built), triple: None }
        })
    }

    /// The target folder that a program lies in: `<target>/<profile>/udf-host`, or
    /// `<target>/<profile>/deps/<test>-<hash>`.
    pub(crate) fn around(exe: &Path) -> Option<Self> {
        let folder = exe.parent()?;
        Self::above(folder).or_else(|| Self::above(folder.parent()?))
    }

    fn above(profile_dir: &Path) -> Option<Self> {
        let built = Path::new(BUILT);
        let profile = profile_of(built);
        let above =
            profile_dir.parent().filter(|_| profile_dir.file_name() == built.file_name())?;
        if is_target_folder(above) {
            return Some(Self { folder: above.to_path_buf(), profile, triple: None });
        }
        let triple = env!("UDF_HOST_TRIPLE");
        let folder =
            above.parent().filter(|folder| above.ends_with(triple) && is_target_folder(folder))?;
        Some(Self { folder: folder.to_path_buf(), profile, triple: Some(triple.to_owned()) })
    }

    /// The folder of the host's own files: shadows, stamps and copies of artifacts.
    pub(crate) fn own_folder(&self) -> PathBuf {
        self.folder.join("udf-host")
    }

    /// Profile and triple in one word.
    pub(crate) fn name(&self) -> String {
        match &self.triple {
            Some(triple) => format!("{triple}-{}", self.profile),
            None => self.profile.clone(),
        }
    }
}

/// The folder of the profile this host was built with.
const BUILT: &str = env!("UDF_HOST_PROFILE_DIR");

fn profile_of(profile_dir: &Path) -> String {
    match profile_dir.file_name().unwrap_or_default().to_string_lossy() {
        // The one profile whose folder is not called like it.
        name if name == "debug" => "dev".to_owned(),
        name => name.into_owned(),
    }
}

/// Cargo marks every target folder it makes.
fn is_target_folder(folder: &Path) -> bool {
    folder.join("CACHEDIR.TAG").is_file() && folder.join(".rustc_info.json").is_file()
}

fn target_by_cargo(checkout: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let mut command = Command::new(cargo());
    ToolHomes::find().name_to(&mut command);
    let output = command
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(checkout)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some(serde_json::from_slice::<Metadata>(&output.stdout).ok()?.target_directory)
}

/// The cargo that started us, so that it is the same one, else the one in the path.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO")
        .filter(|path| Path::new(path).is_file())
        .unwrap_or_else(|| "cargo".into())
}

/// What cargo tells while it builds.
#[derive(Debug)]
pub(crate) enum Event {
    /// A crate is done; its library lies here.
    Built {
        /// The crate's Cargo.toml, in the shadow.
        manifest: PathBuf,
        /// The file.
        library: PathBuf,
    },
    /// The compiler refuses a crate.
    Error {
        /// The crate's Cargo.toml, in the shadow.
        manifest: PathBuf,
        /// The crate's name.
        name: String,
        /// One line.
        message: String,
        /// As the compiler shows it.
        rendered: String,
    },
    /// Cargo waits for another one.
    Waiting {
        /// Cargo's words for what it waits for.
        what: String,
    },
    /// A crate's turn has come.
    Compiling {
        /// The crate.
        what: String,
    },
}

/// How a build ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Whether cargo came as far as building. If not, a manifest or the resolution of dependencies is at fault.
    pub(crate) began: bool,
    /// Whether everything was built.
    pub(crate) success: bool,
    /// What cargo said beside its messages, without progress.
    pub(crate) said: String,
}

/// A running cargo, for whoever has to stop it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    child: Option<Child>,
    stopped: bool,
}

impl Running {
    /// Ends the running build, and lets no other begin.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopped = true;
        if let Some(mut child) = state.child.take() {
            // It may have ended by itself a moment ago, which is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stopped
    }

    fn start(
        &self,
        command: &mut Command,
    ) -> std::io::Result<Option<(impl Read + use<>, impl Read + use<>)>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return Ok(None);
        }
        let mut child = command.spawn()?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        state.child = Some(child);
        Ok(pipes)
    }

    fn end(&self) -> std::io::Result<bool> {
        let child = self.0.lock().unwrap_or_else(PoisonError::into_inner).child.take();
        match child {
            Some(mut child) => Ok(child.wait()?.success()),
            None => Ok(false),
        }
    }
}

/// Builds crates of a shadow.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) shadow: &'a Shadow,
    pub(crate) target: &'a Target,
    pub(crate) running: &'a Running,
}

impl Builder<'_> {
    /// Builds the packages; `tell` hears each event as it comes.
    pub(crate) fn build(
        &self,
        packages: &[&str],
        mut tell: impl FnMut(Event),
    ) -> std::io::Result<Ended> {
        let mut command = self.cargo("build");
        command.args([
            "--message-format=json",
            "--keep-going",
            "--lib",
            "--profile",
            &self.target.profile,
        ]);
        if let Some(triple) = &self.target.triple {
            command.args(["--target", triple]);
        }
        // The host is named beside the plugins so that the crates they share get the features they have in the
        // checkout: alone, plugins would build them all a second time.
        command.args(["-p", "host"]);
        for package in packages {
            command.args(["-p", package]);
        }
        let mut ended = Ended { began: false, success: false, said: String::new() };
        let Some((stdout, stderr)) = self.running.start(&mut command)? else { return Ok(ended) };
        for line in lines(stdout, stderr) {
            match line {
                Line::Message(text) => {
                    ended.began = true;
                    if let Some(event) = event(&text) {
                        tell(event);
                    }
                }
                Line::Said(text) => match progress(&text) {
                    Some(event) => tell(event),
                    None => {
                        ended.said.push_str(&text);
                        ended.said.push('\n');
                    }
                },
            }
        }
        ended.success = self.running.end()?;
        Ok(ended)
    }

    /// Asks cargo whether this workspace can be resolved; its complaint if not.
    pub(crate) fn resolve(&self) -> std::io::Result<Result<(), String>> {
        let mut command = self.cargo("metadata");
        command.arg("--format-version=1").stdout(Stdio::null());
        let output = command.output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said()) })
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut command = Command::new(cargo());
        ToolHomes::find().name_to(&mut command);
        command
            .arg(verb)
            .current_dir(self.shadow.root())
            .env("CARGO_TARGET_DIR", &self.target.folder)
            .env("CARGO_TERM_COLOR", "never")
            // Set by a cargo that started us, about the package it started.
            .env_remove("CARGO_MANIFEST_DIR")
            .env_remove("CARGO_MANIFEST_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

enum Line {
    Message(String),
    Said(String),
}

/// Both streams line by line, as they come. Read on threads of their own: a full pipe would stop cargo.
fn lines(stdout: impl Read + Send + 'static, stderr: impl Read + Send + 'static) -> Receiver<Line> {
    fn forward(stream: impl Read + Send + 'static, to: Sender<Line>, wrap: fn(String) -> Line) {
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(stream.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if to.send(wrap(text)).is_err() {
                    return;
                }
            }
        });
    }
    let (sender, receiver) = channel();
    forward(stdout, sender.clone(), Line::Message);
    forward(stderr, sender, Line::Said);
    receiver
}

/// A message of cargo's on stdout, as far as we care.
fn event(text: &str) -> Option<Event> {
    #[derive(Deserialize)]
    #[serde(tag = "reason")]
    enum Message {
        #[serde(rename = "compiler-artifact")]
        Built { manifest_path: PathBuf, target: Crate, filenames: Vec<PathBuf> },
        #[serde(rename = "compiler-message")]
        Diagnosed { manifest_path: PathBuf, target: Crate, message: Diagnostic },
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    struct Crate {
        name: String,
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Diagnostic {
        level: String,
        message: String,
        rendered: Option<String>,
    }
    match serde_json::from_str(text).ok()? {
        Message::Built { manifest_path, target, filenames } => {
            let cdylib = target.kind.iter().any(|kind| kind == "cdylib");
            let library = filenames
                .into_iter()
                .filter(|_| cdylib)
                .find(|file| file.extension().is_some_and(|extension| extension == "so"))?;
            Some(Event::Built { manifest: manifest_path, library })
        }
        Message::Diagnosed { manifest_path, target, message } => {
            // "aborting due to .." and the like say nothing beside the errors before them.
            let error = message.level.starts_with("error")
                && !message.message.starts_with("aborting due to");
            error.then(|| Event::Error {
                manifest: manifest_path,
                name: target.name,
                rendered: message.rendered.unwrap_or_else(|| message.message.clone()),
                message: message.message,
            })
        }
        Message::Other => None,
    }
}

/// A line of cargo's on stderr that is about progress.
fn progress(line: &str) -> Option<Event> {
    let (verb, rest) = line.trim_start().split_once(' ')?;
    match verb {
        "Blocking" => {
            Some(Event::Waiting { what: rest.trim_start_matches("waiting for ").to_owned() })
        }
        "Compiling" => {
            Some(Event::Compiling { what: rest.split(" (").next().unwrap_or(rest).to_owned() })
        }
        "Finished" | "Fresh" | "Locking" | "Adding" | "Removing" | "Updating" | "Downloading"
        | "Downloaded" => Some(Event::Compiling { what: line.trim().to_owned() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_are_told_apart() {
        let artifact = r#"{"reason":"compiler-artifact","package_id":"path+file:///s#udf-p-a@0.1.0","manifest_path":"/s/udfs/p/a/Cargo.toml","target":{"kind":["cdylib"],"crate_types":["cdylib"],"name":"udf_p_a","src_path":"/s/udfs/p/a/src/lib.rs","edition":"2024"},"features":[],"filenames":["/t/release/libudf_p_a.so"],"executable":null,"fresh":true}"#;
        assert!(
            matches!(event(artifact), Some(Event::Built { library, .. }) if library.ends_with("libudf_p_a.so"))
        );
        let library = artifact.replace("cdylib", "lib").replace(".so", ".rlib");
        assert!(event(&library).is_none());
        let error = r#"{"reason":"compiler-message","manifest_path":"/s/udfs/p/a/Cargo.toml","target":{"kind":["cdylib"],"name":"udf_p_a"},"message":{"rendered":"error: no\n --> x","message":"no","level":"error","spans":[]}}"#;
        assert!(matches!(event(error), Some(Event::Error { message, .. }) if message == "no"));
        assert!(event(&error.replace("\"level\":\"error\"", "\"level\":\"warning\"")).is_none());
        assert!(event(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(event("not json").is_none());
    }

    #[test]
    fn progress_is_not_a_complaint() {
        let waiting = progress("    Blocking waiting for file lock on build directory");
        assert!(
            matches!(waiting, Some(Event::Waiting { what }) if what == "file lock on build directory")
        );
        let compiling = progress("   Compiling udf-p-a v0.1.0 (/s/udfs/p/a)");
        assert!(matches!(compiling, Some(Event::Compiling { what }) if what == "udf-p-a v0.1.0"));
        assert!(progress("error: failed to parse manifest at `/s/x/Cargo.toml`").is_none());
    }

    #[test]
    fn the_target_folder_is_the_one_the_program_lies_in() {
        let tree = tempfile::tempdir().unwrap();
        let profile_dir = Path::new(env!("UDF_HOST_PROFILE_DIR")).file_name().unwrap().to_owned();
        let target = tree.path().join("t");
        let folder = target.join(&profile_dir);
        std::fs::create_dir_all(folder.join("deps")).unwrap();
        for mark in ["CACHEDIR.TAG", ".rustc_info.json"] {
            std::fs::File::create(target.join(mark)).unwrap();
        }
        for exe in ["udf-host", "deps/it-0123"] {
            assert_eq!(Target::find(Some(&folder.join(exe)), tree.path()).folder, target, "{exe}");
        }
        let crossed = target.join(env!("UDF_HOST_TRIPLE")).join(&profile_dir);
        let found = Target::find(Some(&crossed.join("udf-host")), tree.path());
        assert_eq!(
            (found.folder, found.triple.as_deref()),
            (target, Some(env!("UDF_HOST_TRIPLE")))
        );
        // Installed elsewhere: where it was built.
        let found = Target::find(Some(&tree.path().join("bin/udf-host")), tree.path());
        assert!(Path::new(env!("UDF_HOST_PROFILE_DIR")).starts_with(found.folder));
    }
}
