//! [`Target`]: where and how things are built.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::cargo;
use crate::plugins::tool_homes::ToolHomes;

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

    /// The files that cargo locks while it builds here.
    pub(crate) fn locks(&self) -> Vec<PathBuf> {
        let profile = if self.profile == "dev" { "debug" } else { &self.profile };
        let folder = match &self.triple {
            Some(triple) => self.folder.join(triple).join(profile),
            None => self.folder.join(profile),
        };
        // Their names are cargo's own business and have changed before.
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_lock = |name: &str| name.starts_with(".cargo") && name.ends_with("lock");
        names
            .filter(|entry| is_lock(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect()
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

/// By the file that cargo keeps in every target folder. Its other mark, `CACHEDIR.TAG`, is only in those that it made
/// itself, not in one that is mounted, or restored by a cache of a continuous integration.
fn is_target_folder(folder: &Path) -> bool {
    folder.join(".rustc_info.json").is_file()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_is_the_one_the_program_lies_in() {
        let tree = tempfile::tempdir().unwrap();
        let profile_dir = Path::new(env!("UDF_HOST_PROFILE_DIR")).file_name().unwrap().to_owned();
        let target = tree.path().join("t");
        let folder = target.join(&profile_dir);
        std::fs::create_dir_all(folder.join("deps")).unwrap();
        std::fs::File::create(target.join(".rustc_info.json")).unwrap();
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
