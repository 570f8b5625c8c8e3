//! What a running cargo does right now, as its processes tell: cargo itself says only what it began and what it did.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A compiler or a build script that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The Cargo.toml of the crate, as cargo names it.
    pub(crate) manifest: PathBuf,
    /// The name of its package.
    pub(crate) package: String,
    /// [`Step::SCRIPT`] or [`Step::COMPILER`].
    pub(crate) what: &'static str,
}

impl Step {
    pub(crate) const SCRIPT: &'static str = "its build script";
    pub(crate) const COMPILER: &'static str = "its compiler";
}

/// The processes of a build.
#[derive(Debug, Default)]
pub(super) struct Processes {
    pub(super) steps: Vec<Step>,
    /// Bytes of memory of cargo itself.
    pub(super) memory: u64,
}

impl Processes {
    /// Those of the session that this process leads.
    pub(super) fn of_session(session: u32) -> Self {
        let mut found = Self::default();
        let Ok(entries) = fs::read_dir("/proc") else { return found };
        for entry in entries.flatten() {
            let place = entry.path();
            let stat = fs::read_to_string(place.join("stat")).unwrap_or_default();
            if session_of(&stat) != Some(session) {
                continue;
            }
            match step(&place) {
                Some(step) if !found.steps.contains(&step) => found.steps.push(step),
                Some(_) => {}
                None => found.memory += memory(&place),
            }
        }
        found
    }
}

/// The session in a `/proc/<pid>/stat`: the fourth field after the name, which may hold anything.
fn session_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()
}

/// Cargo tells every compiler and build script by its environment for whom it works.
fn step(place: &Path) -> Option<Step> {
    let environment = fs::read(place.join("environ")).ok()?;
    let variable = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let folder = Path::new(OsStr::from_bytes(variable("CARGO_MANIFEST_DIR")?));
    // Set for build scripts alone.
    let what = if variable("NUM_JOBS").is_some() { Step::SCRIPT } else { Step::COMPILER };
    Some(Step {
        manifest: folder.join("Cargo.toml"),
        package: String::from_utf8_lossy(variable("CARGO_PKG_NAME")?).into_owned(),
        what,
    })
}

fn memory(place: &Path) -> u64 {
    let status = fs::read_to_string(place.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_session_is_told_apart_and_so_is_what_runs_in_it() {
        assert_eq!(session_of("12 (a) b (c) S 1 77 78 0"), Some(78));
        let mut child = Command::new("sleep")
            .arg("60")
            .env("CARGO_MANIFEST_DIR", "/shadow/udfs/p/a")
            .env("CARGO_PKG_NAME", "udf-p-a")
            .env("NUM_JOBS", "2")
            .spawn()
            .unwrap();
        let place = PathBuf::from(format!("/proc/{}", child.id()));
        let deadline = Instant::now() + Duration::from_secs(20);
        // Its environment is there a moment after itself.
        while step(&place).is_none_or(|step| step.package != "udf-p-a") && Instant::now() < deadline
        {
            std::thread::yield_now();
        }
        let stat = fs::read_to_string(place.join("stat")).unwrap();
        let found = Processes::of_session(session_of(&stat).unwrap());
        let want = Step {
            manifest: "/shadow/udfs/p/a/Cargo.toml".into(),
            package: "udf-p-a".to_owned(),
            what: "its build script",
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.steps.contains(&want), "{found:?}");
    }
}
