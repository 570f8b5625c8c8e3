//! Checks of the state folder and of the cache: what is corrupt, locked, left over or not ours to use.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use core_store::{State, Store, StoreError, StoreOptions};
use rustix::fs::{Access, access};

use super::Finding;
use crate::lock_holder::{self, Holder};

/// The folder of checked artifacts: whoever can write there can run code as us.
pub(super) fn check_cache(folder: &Path) -> Vec<Finding> {
    let place = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(), // Made at need.
        Err(error) => vec![Finding::problem(
            place,
            format!("the cache is unusable: {error}"),
            "make it readable",
        )],
        Ok(facts) if facts.uid() != rustix::process::geteuid().as_raw() => vec![Finding::problem(
            place,
            "the cache belongs to another user",
            "set UDF_HOST_CACHE to a folder of your own",
        )],
        Ok(facts) if facts.mode() & 0o077 != 0 => {
            vec![Finding::problem(
                place,
                "the cache is open to others",
                format!("run `chmod 700 {}`", folder.display()),
            )]
        }
        Ok(_) => Vec::new(),
    }
}

/// What keeps records from being written below `app_dir`, found without writing anything.
pub(super) fn check_folder(app_dir: &Path) -> Option<Finding> {
    let folder = nearest_existing(&app_dir.join("state"))?;
    let place = folder.display();
    if !folder.is_dir() {
        return Some(Finding::problem(
            place,
            "records cannot be kept here: not a directory",
            "name a folder with --app-dir, or move this out of its way",
        ));
    }
    let error = access(&folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(Finding::problem(
        place,
        format!("records cannot be written here: {error}"),
        "give yourself read and write permission on it, or name another folder with --app-dir",
    ))
}

/// The state folder. Nothing in it is locked, created or renamed by the check. `writers` names, for a collection, an
/// operation that writes it.
pub(super) fn check(app_dir: &Path, writers: &BTreeMap<String, String>) -> Vec<Finding> {
    let state = app_dir.join("state");
    let mut findings: Vec<Finding> = check_folder(app_dir).into_iter().collect();
    let Ok(entries) = fs::read_dir(&state) else { return findings };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let locks = lock_holder::all();
    let store = Store::open(StoreOptions::default()).app(app_dir);
    for file in &files {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(collection) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".lock"))
        {
            findings.extend(holder(file, collection, &locks));
        } else if let Some(collection) = name.strip_suffix(".json") {
            let read = store.read(collection).map(|snapshot| snapshot.state().clone());
            findings.extend(fault(file, read, writers.get(collection)));
        } else if name.ends_with(".json.tmp") {
            findings.push(Finding::note(
                file.display(),
                "a write was cut off before its rename, or is going on",
                "nothing needs to be done: the next write replaces it",
            ));
        }
    }
    findings
}

fn fault(
    file: &Path,
    state: Result<State, StoreError>,
    writer: Option<&String>,
) -> Option<Finding> {
    let place = file.display();
    let restore = format!(
        "compare it with a backup, correct or restore it; `mv {0} {0}.bad` starts afresh",
        file.display()
    );
    match state {
        Ok(State::Missing | State::Stored | State::Falsy) => None,
        Ok(State::Corrupt(reason)) => Some(Finding::problem(
            place,
            format!(
                "it cannot be parsed ({reason}): it reads as empty, and writes to it are refused"
            ),
            restore,
        )),
        // Some collections are objects by nature, which no operation writes.
        Ok(State::Odd) => Some(match writer {
            Some(writer) => Finding::problem(
                place,
                format!(
                    "it holds no list: it reads as empty, and writes to it, as by {writer}, are refused"
                ),
                restore,
            ),
            None => Finding::note(
                place,
                "it holds no list, so as records it reads as empty",
                "nothing needs to be done if a program keeps settings there",
            ),
        }),
        Err(_) if file.is_dir() => Some(Finding::problem(
            place,
            "it is a directory where the file of a collection belongs: what reads or writes it fails",
            format!(
                "`mv {0} {0}.bad` makes room; then restore the file, or start afresh",
                file.display()
            ),
        )),
        Err(error) => {
            let because =
                error.source().map(|source| format!(", because {source}")).unwrap_or_default();
            Some(Finding::problem(
                place,
                format!("it cannot be read: {error}{because}"),
                "make it a readable file",
            ))
        }
    }
}

/// Who holds the lock of a collection. A short hold is normal; a long one explains why writes wait.
fn holder(sentinel: &Path, collection: &str, locks: &str) -> Option<Finding> {
    let holder = Holder::among(&fs::metadata(sentinel).ok()?, locks)?;
    Some(Finding::note(
        sentinel.display(),
        format!("writes to `{collection}` wait for {holder}"),
        "if it stays so, end that process; the lock ends with it",
    ))
}

fn nearest_existing(folder: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(folder).ok()?;
    // A link that leads nowhere is there, too: nothing can be made in its place.
    whole.ancestors().find(|folder| folder.symlink_metadata().is_ok()).map(Path::to_owned)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files as other programs leave them")]
mod tests {
    use super::super::Severity;
    use super::*;

    fn words(findings: &[Finding]) -> Vec<String> {
        let name = |place: &str| place.rsplit('/').next().unwrap_or_default().to_owned();
        findings
            .iter()
            .map(|finding| format!("{}: {}", name(&finding.place), finding.what))
            .collect()
    }

    #[test]
    fn a_folder_that_is_not_there_or_in_order_is_silent() {
        let home = tempfile::tempdir().unwrap();
        let none = BTreeMap::new();
        assert_eq!(check(&home.path().join("none"), &none), []);
        let state = home.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::write(state.join("cards.json"), "[{\"id\":\"a\"}]").unwrap();
        fs::write(state.join("tasks.json"), "null").unwrap();
        fs::write(state.join(".cards.lock"), "").unwrap();
        assert_eq!(check(home.path(), &none), []);
    }

    #[test]
    fn corrupt_odd_left_over_and_locked_files_are_named_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::write(state.join("cards.json"), "[{").unwrap();
        fs::write(state.join("onboarding.json"), "{\"version\":1}").unwrap();
        fs::write(state.join("runs.json.tmp"), "[").unwrap();
        let sentinel = fs::File::create(state.join(".runs.lock")).unwrap();
        sentinel.lock().unwrap();
        let found = words(&check(home.path(), &BTreeMap::new()));
        let pid = std::process::id();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[0].contains(&format!(".runs.lock: writes to `runs` wait for process {pid}")),
            "{found:?}"
        );
        assert!(found[1].starts_with("cards.json: it cannot be parsed ("), "{found:?}");
        assert!(found[2].starts_with("onboarding.json: it holds no list"), "{found:?}");
        assert!(found[3].starts_with("runs.json.tmp: a write was cut off"), "{found:?}");
        assert_eq!(fs::read(state.join("cards.json")).unwrap(), b"[{");
        assert_eq!(fs::read_dir(&state).unwrap().count(), 4);
    }

    #[test]
    fn what_an_operation_writes_must_be_a_list_in_a_file() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        fs::create_dir_all(state.join("tasks.json")).unwrap();
        fs::write(state.join("cards.json"), "{\"a\":1}").unwrap();
        fs::write(state.join("onboarding.json"), "{\"a\":1}").unwrap();
        let writers = BTreeMap::from([("cards".to_owned(), "_core.p.create_card".to_owned())]);
        let [cards, onboarding, tasks] = check(home.path(), &writers).try_into().unwrap();
        assert_eq!(cards.severity, Severity::Problem);
        assert!(cards.what.contains("as by _core.p.create_card, are refused"), "{cards:?}");
        assert!(!cards.remedy.contains("nothing needs"), "{cards:?}");
        assert_eq!(onboarding.severity, Severity::Note);
        assert_eq!(tasks.severity, Severity::Problem);
        assert!(tasks.what.contains("it is a directory"), "{tasks:?}");
    }

    #[test]
    fn a_state_folder_that_is_a_file_or_leads_nowhere_is_no_directory() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for (app_dir, place) in [(&file, &file), (&file.join("below"), &file), (&link, &link)] {
            let [found] = check(app_dir, &BTreeMap::new()).try_into().unwrap();
            assert_eq!(found.place, place.display().to_string());
            assert!(found.what.ends_with("not a directory"), "{found:?}");
            assert!(found.remedy.contains("--app-dir"), "{found:?}");
        }
        assert_eq!(check_folder(&home.path().join("none/below")), None);
    }

    #[test]
    fn a_cache_open_to_others_is_a_problem() {
        use std::os::unix::fs::PermissionsExt;
        let cache = tempfile::tempdir().unwrap();
        fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(check_cache(cache.path()), []);
        fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(check_cache(cache.path())[0].what.contains("open to others"));
        assert_eq!(check_cache(&cache.path().join("none")), []);
    }
}
