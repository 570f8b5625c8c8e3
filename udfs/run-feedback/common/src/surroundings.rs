//! What this process sees of the machine, its user and the repository it works in (§5, §15).

use std::time::Duration;

use crate::identity::Surroundings;
use crate::new_run::Environment;
use crate::process;

/// git reads a few small files; anything longer is a fault of the machine.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// Who runs the process: `USER`, else `unknown`.
pub fn process_user() -> String {
    variable("USER").unwrap_or_else(|| "unknown".to_owned())
}

impl Surroundings {
    /// Of this process.
    pub fn of_process() -> Surroundings {
        Surroundings {
            git_name: git(&["config", "user.name"]).unwrap_or_default(),
            git_email: git(&["config", "user.email"]).unwrap_or_default(),
            user: variable("USER").unwrap_or_default(),
            logname: variable("LOGNAME").unwrap_or_default(),
        }
    }
}

impl Environment {
    /// Of this process.
    pub fn of_process() -> Environment {
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        // In a repository without commits the first succeeds nowhere and the second prints `HEAD` and fails.
        let git_commit = git(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        let git_branch =
            git_commit.as_ref().and_then(|_| git(&["rev-parse", "--abbrev-ref", "HEAD"]));
        Environment {
            user: process_user(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            git_branch: known(git_branch),
            git_commit: known(git_commit),
            working_directory: working_directory().unwrap_or_default(),
        }
    }
}

/// The address of the remote `origin`.
pub fn origin_url() -> Option<String> {
    git(&["config", "remote.origin.url"])
}

/// The name of the repository's root, else of the working directory.
pub fn directory_name() -> Option<String> {
    let root = git(&["rev-parse", "--show-toplevel"]).or_else(working_directory)?;
    let name = root.trim_end_matches('/').rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn working_directory() -> Option<String> {
    Some(std::env::current_dir().ok()?.to_string_lossy().into_owned())
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|value| !value.is_empty())
}

/// What git prints, without its final newline; `None` if git is missing, fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let outcome = process::run("git", arguments, GIT_LIMIT)
        .ok()
        .filter(|outcome| outcome.status.success())?;
    let text = outcome.stdout.strip_suffix('\n').unwrap_or(&outcome.stdout);
    (!text.is_empty()).then(|| text.to_owned())
}
