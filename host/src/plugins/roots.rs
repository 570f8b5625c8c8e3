//! [`Root`]: the folders in which operations are looked for, in order.

use std::path::{Path, PathBuf};

use super::catalog::Problem;
use crate::config::Config;

/// A folder in which operations are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// Resolved: no links, absolute.
    pub(crate) path: PathBuf,
    pub(crate) kind: RootKind,
    /// Given by flag or environment, so that what is wrong with it is said.
    pub(crate) named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// Crates that are built here.
    Sources,
    /// Artifacts that were built elsewhere.
    Prebuilt,
}

/// What the host stands in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) exe: Option<PathBuf>,
    /// The checkout the binary was built from, if it is still there.
    pub(crate) checkout: Option<PathBuf>,
}

impl Surroundings {
    pub(crate) fn of_process() -> Self {
        let exe = std::env::current_exe().and_then(|exe| exe.canonicalize()).ok();
        let built_in = Path::new(env!("UDF_HOST_CHECKOUT"));
        Self {
            cwd: std::env::current_dir().ok(),
            checkout: exe
                .as_deref()
                .and_then(checkout_around)
                .or_else(|| is_checkout(built_in).then(|| built_in.to_owned())),
            exe,
        }
    }
}

/// Whether the sources of a host lie here.
pub(crate) fn is_checkout(folder: &Path) -> bool {
    ["host", "sdk"].iter().all(|part| folder.join(part).join("Cargo.toml").is_file())
}

/// The checkout that a program lies in. It is asked before the one that the program was built in, since a checkout may
/// be moved or copied together with what was built in it.
fn checkout_around(exe: &Path) -> Option<PathBuf> {
    exe.ancestors().skip(1).find(|folder| is_checkout(folder)).map(Path::to_path_buf)
}

/// Where operations are looked for, strongest first; a folder that several rules name is there once.
pub(crate) fn roots(config: &Config, around: &Surroundings) -> (Vec<Root>, Vec<Problem>) {
    let mut roots: Vec<Root> = Vec::new();
    let mut problems = Vec::new();
    let mut add = |path: &Path, kind: RootKind, named: bool| match path.canonicalize() {
        Ok(path) if path.is_dir() => {
            if !roots.iter().any(|root| root.path == path) {
                roots.push(Root { path, kind, named });
            }
        }
        Ok(_) if named => problems.push(Problem {
            place: path.to_owned(),
            reason: "it is not a folder".to_owned(),
            remedy: "give the folder that holds the projects".to_owned(),
        }),
        Err(error) if named => problems.push(Problem {
            place: path.to_owned(),
            reason: format!("the folder cannot be opened: {error}"),
            remedy: "create it, or leave out the flag or variable that names it".to_owned(),
        }),
        Ok(_) | Err(_) => {}
    };
    config.udfs.iter().for_each(|path| add(path, RootKind::Sources, true));
    config.plugins.iter().for_each(|path| add(path, RootKind::Prebuilt, true));
    if !config.only {
        if let Some(nearest) = around.cwd.as_deref().and_then(nearest_udfs) {
            add(&nearest, RootKind::Sources, false);
        }
        if let Some(checkout) = &around.checkout {
            add(&checkout.join("udfs"), RootKind::Sources, false);
        }
        if let Some(folder) = around.exe.as_deref().and_then(Path::parent) {
            add(&folder.join("plugins"), RootKind::Prebuilt, false);
        }
    }
    if roots.is_empty() {
        problems.push(Problem {
            place: around.cwd.clone().unwrap_or_default(),
            reason: "no folder with operations was found; the host serves none".to_owned(),
            remedy: "start it at or below a folder that holds `udfs/`, or name one with --udfs or --plugins".to_owned(),
        });
    }
    (roots, problems)
}

/// Roots that are not there and would count if they appeared, and those that are there and may be replaced.
pub(crate) fn candidates(config: &Config, around: &Surroundings) -> Vec<PathBuf> {
    let named = config.udfs.iter().chain(&config.plugins).cloned();
    let implied = around.cwd.iter().filter(|_| !config.only).map(|cwd| cwd.join("udfs"));
    named.chain(implied).filter_map(|path| std::path::absolute(path).ok()).collect()
}

/// The nearest `udfs/` at or above `from`.
fn nearest_udfs(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join("udfs")).find(|udfs| udfs.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(udfs: &[&Path], plugins: &[&Path], only: bool) -> Config {
        let mut config = Config::resolve(&[], None, None, None);
        config.udfs = udfs.iter().map(|path| path.to_path_buf()).collect();
        config.plugins = plugins.iter().map(|path| path.to_path_buf()).collect();
        config.only = only;
        config
    }

    #[test]
    fn the_order_is_the_documented_one_and_each_folder_comes_once() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let path = home.path().canonicalize().unwrap().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (given, packed) = (at("given"), at("packed"));
        let (near, checkout, beside) = (at("work/udfs"), at("checkout/udfs"), at("bin/plugins"));
        let around = Surroundings {
            cwd: Some(at("work/deep/er")),
            exe: Some(home.path().join("bin/udf-host")),
            checkout: Some(at("checkout")),
        };
        let found = |config: &Config| {
            let (roots, problems) = roots(config, &around);
            assert_eq!(problems, []);
            roots.into_iter().map(|root| root.path).collect::<Vec<_>>()
        };
        let all = found(&config(&[&given, &given], &[&packed], false));
        let beside = beside.canonicalize().unwrap();
        assert_eq!(
            all,
            [given.clone(), packed.clone(), near.clone(), checkout.clone(), beside.clone()]
        );
        assert_eq!(found(&config(&[&checkout], &[], false)), [checkout.clone(), near, beside]);
        assert_eq!(found(&config(&[&given], &[&packed], true)), [given, packed]);
    }

    #[test]
    fn a_checkout_that_was_moved_is_the_one_around_the_program() {
        let home = tempfile::tempdir().unwrap();
        let exe = home.path().join("moved/target/release/udf-host");
        assert_eq!(checkout_around(&exe), None);
        for part in ["host", "sdk"] {
            let folder = home.path().join("moved").join(part);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::File::create(folder.join("Cargo.toml")).unwrap();
        }
        assert_eq!(checkout_around(&exe), Some(home.path().join("moved")));
        assert_eq!(checkout_around(&home.path().join("bin/udf-host")), None);
    }

    #[test]
    fn a_named_folder_that_is_missing_is_said_and_stops_nothing() {
        let home = tempfile::tempdir().unwrap();
        let missing = home.path().join("missing");
        let (found, problems) = roots(&config(&[&missing], &[], false), &Surroundings::default());
        assert_eq!(found, []);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0].place, missing);
        assert!(problems[1].reason.contains("serves none"));
    }
}
