//! [`ToolHomes`]: where cargo and rustup keep their things when `HOME` does not lead there.
//!
//! Both look below `HOME`. A host that is started with another one, in a sandbox or by a test, would have neither
//! toolchain nor registry although both are there, beside the `cargo` in the path.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The folders that cargo must be told of; none where it finds them by itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolHomes {
    cargo: Option<PathBuf>,
    rustup: Option<PathBuf>,
}

impl ToolHomes {
    /// For this process's environment.
    pub(crate) fn find() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    fn of(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = var("PATH").unwrap_or_default();
        // `<cargo home>/bin/cargo`, with `<rustup home>` next to the cargo home.
        let bin = std::env::split_paths(&path).find(|folder| folder.join("cargo").is_file());
        let Some(cargo) = bin
            .filter(|bin| bin.ends_with(".cargo/bin"))
            .and_then(|bin| Some(bin.parent()?.to_owned()))
        else {
            return Self::default();
        };
        let home = var("HOME").map(PathBuf::from);
        let lost = |variable: &str, folder: &str| {
            let there = home.as_ref().is_some_and(|home| home.join(folder).is_dir());
            var(variable).is_none() && !there
        };
        let rustup = cargo.with_file_name(".rustup");
        Self {
            rustup: Some(rustup).filter(|rustup| lost("RUSTUP_HOME", ".rustup") && rustup.is_dir()),
            cargo: Some(cargo).filter(|_| lost("CARGO_HOME", ".cargo")),
        }
    }

    /// rustup's folder, if `HOME` does not lead there.
    pub(crate) fn rustup(self) -> Option<PathBuf> {
        self.rustup
    }

    /// Names the folders to a command.
    pub(crate) fn name_to(self, command: &mut Command) {
        for (variable, folder) in [("CARGO_HOME", self.cargo), ("RUSTUP_HOME", self.rustup)] {
            if let Some(folder) = folder {
                command.env(variable, folder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_home_leads_to_is_not_named() {
        let tree = tempfile::tempdir().unwrap();
        let own = tree.path().join("own");
        for folder in ["own/.cargo/bin", "own/.rustup", "other", "bare/bin"] {
            fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        for bin in ["own/.cargo/bin", "bare/bin"] {
            fs::File::create(tree.path().join(bin).join("cargo")).unwrap();
        }
        let cargo = Some(own.join(".cargo"));
        let rustup = Some(own.join(".rustup"));
        let none = ToolHomes::default();
        for (home, bin, more, want) in [
            ("own", "own/.cargo/bin", None, none),
            (
                "other",
                "own/.cargo/bin",
                None,
                ToolHomes { cargo: cargo.clone(), rustup: rustup.clone() },
            ),
            ("other", "own/.cargo/bin", Some("CARGO_HOME"), ToolHomes { cargo: None, rustup }),
            ("other", "own/.cargo/bin", Some("RUSTUP_HOME"), ToolHomes { cargo, rustup: None }),
            ("other", "bare/bin", None, ToolHomes::default()),
            ("other", "nowhere", None, ToolHomes::default()),
        ] {
            let found = ToolHomes::of(|name| match name {
                "HOME" => Some(tree.path().join(home).into()),
                "PATH" => Some(tree.path().join(bin).into()),
                name => (Some(name) == more).then(|| "/elsewhere".into()),
            });
            assert_eq!(found, want, "HOME={home} PATH={bin} {more:?}");
        }
    }
}
