//! Who answers.

use std::process::{Command, Stdio};

/// The person at this machine: git's `user.name`, else `USER`, else `LOGNAME`, else `unknown`; the rule of the
/// run-feedback contract §15, so that one person has one name everywhere.
pub(super) fn here() -> String {
    let variable = |name: &str| std::env::var(name).ok();
    first([git_name(), variable("USER"), variable("LOGNAME")])
}

fn first(names: [Option<String>; 3]) -> String {
    let mut names = names.into_iter().flatten().filter(|name| !name.is_empty());
    names.next().unwrap_or_else(|| "unknown".to_owned())
}

fn git_name() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "user.name"]).stdin(Stdio::null()).stderr(Stdio::null());
    // Without git, or without a name in it, the environment decides.
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_empty_do_not_count() {
        let name = |git: Option<&str>, user: &str, logname: &str| {
            first([git.map(str::to_owned), Some(user.to_owned()), Some(logname.to_owned())])
        };
        assert_eq!(name(Some("Ann B"), "ann", "a"), "Ann B");
        assert_eq!(name(Some(""), "ann", "a"), "ann");
        assert_eq!(name(None, "", "a"), "a");
        assert_eq!(name(None, "", ""), "unknown");
    }
}
