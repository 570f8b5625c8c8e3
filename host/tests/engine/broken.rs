//! Folders and artifacts that are broken in every way we know of, beside ones that are not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use host::plugins::EntryView;
use host::{Address, Host, HostError};

use crate::support::{HELLO, Udfs, call, cargo_toml};

fn view(host: &Host, op: &str) -> EntryView {
    let address = Address::parse(&format!("default.{op}")).unwrap();
    host.catalog.entry(&address).unwrap_or_else(|| panic!("{op} is listed")).view()
}

#[track_caller]
fn assert_refused(host: &Host, op: &str, words: &str) -> EntryView {
    let view = view(host, op);
    assert_eq!(view.state, "refused", "{view:?}");
    let reason = view.reason.clone().unwrap();
    assert!(reason.contains(words), "{op}: {reason}\n{:?}", view.detail);
    assert!(view.remedy.is_some(), "{view:?}");
    let error = call(host, op, &[]).unwrap_err();
    assert!(matches!(error, HostError::Refused { .. }), "{error}");
    let folder = view.folder.to_string_lossy();
    assert!(!error.to_string().contains(&*folder), "callers are told no paths: {error}");
    view
}

#[test]
fn broken_folders_stop_neither_the_start_nor_the_other_builds() {
    let udfs = Udfs::new();
    let hello = |name: &str| HELLO.replace("fn hello", &format!("fn {name}"));
    udfs.op("p", "hello", HELLO)
        .op("p", "alright", &hello("alright"))
        // Half written: what an editor or a copy leaves for a moment.
        .write("p/empty/notes.txt", "")
        .write("p/half/Cargo.toml", "[package]\nname = \"udf-p-ha")
        .write("p/nosource/Cargo.toml", &cargo_toml("udf-p-nosource"))
        .write("p/nosource/spec.md", "# x")
        // Rust that does not compile.
        .op("p", "wrong", "use sdk::prelude::*;\n#[udf]\nfn wrong(_ctx: &Context) -> Result<Reply, UdfError> { nonsense() }\n")
        // Manifests that only cargo can see through.
        .op("p", "edition", HELLO)
        .write("p/edition/Cargo.toml", &cargo_toml("udf-p-edition").replace("2024", "1066"))
        .op("p", "lost", HELLO)
        .write("p/lost/Cargo.toml", &cargo_toml("udf-p-lost").replace("sdk = {", "nowhere = { path = \"../nowhere\" }\nsdk = {"))
        // A function that is not called like its folder.
        .op("p", "misnamed", HELLO)
        // A cdylib that is no plugin.
        .op("p", "plain", "//! Nothing here.\n");
    let began = Instant::now();
    let host = Host::start(udfs.config()).unwrap();
    assert!(host.catalog.wait_discovered(began + Duration::from_secs(5)));
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "the start waits for nothing: {:?}",
        began.elapsed()
    );
    host.catalog.wait_settled(Instant::now() + crate::support::PATIENCE);

    assert_eq!(call(&host, "p.hello", &[]).unwrap(), "\"hello world\"");
    assert_eq!(call(&host, "p.alright", &[]).unwrap(), "\"hello world\"");
    assert_refused(&host, "p.empty", "no Cargo.toml");
    assert_refused(&host, "p.half", "not valid TOML");
    assert_refused(&host, "p.nosource", "no src/lib.rs");
    let wrong =
        assert_refused(&host, "p.wrong", "does not compile: cannot find function `nonsense`");
    let detail = wrong.detail.unwrap();
    let source = udfs.root().canonicalize().unwrap().join("p/wrong/src/lib.rs");
    assert!(
        detail.contains(&*source.to_string_lossy()),
        "the author's own path is shown: {detail}"
    );
    assert_refused(&host, "p.edition", "cargo refuses its Cargo.toml");
    assert_refused(&host, "p.lost", "cargo refuses its Cargo.toml");
    let misnamed = assert_refused(&host, "p.misnamed", "not called like its folder");
    assert_eq!(
        (misnamed.expected.as_deref(), misnamed.found.as_deref()),
        (Some("misnamed"), Some("hello"))
    );
    assert_refused(&host, "p.plain", "not a plugin");
    let progress = host.catalog.progress();
    assert_eq!((progress.ready, progress.refused, progress.total), (2, 8, 10));
}

#[test]
fn a_library_beside_the_operations_is_shared_and_its_errors_are_told_to_them() {
    let udfs = Udfs::new();
    let uses_common = cargo_toml("udf-p-hello")
        .replace("[workspace]", "p-common = { path = \"../common\" }\n[workspace]");
    let source = HELLO.replace("\"hello {name}\"", "\"{} {name}\", p_common::greeting()");
    udfs.op("p", "hello", &source)
        .write("p/hello/Cargo.toml", &uses_common)
        .write(
            "p/common/Cargo.toml",
            "[package]\nname = \"p-common\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        )
        .write(
            "p/common/src/lib.rs",
            "//! Words.\n/// One.\npub fn greeting() -> &'static str { \"moin\" }\n",
        );
    let host = udfs.host();
    assert_eq!(call(&host, "p.hello", &[]).unwrap(), "\"moin world\"");
    assert_eq!(host.catalog.list().len(), 1, "the library is no operation");

    // A change of the library is a change of what it is in.
    udfs.write(
        "p/common/src/lib.rs",
        "//! Words.\n/// One.\npub fn greeting() -> &'static str { \"ahoy there\" }\n",
    );
    assert_eq!(call(&udfs.host(), "p.hello", &[]).unwrap(), "\"ahoy there world\"");

    udfs.write(
        "p/common/src/lib.rs",
        "//! Words.\n/// One.\npub fn greeting() -> &'static str { 1 }\n",
    );
    let view = assert_refused(&udfs.host(), "p.hello", "a crate that it needs does not compile");
    assert!(view.detail.unwrap().contains("common/src/lib.rs"));
}

#[test]
fn what_is_built_is_not_built_again_and_what_changed_is() {
    let udfs = Udfs::new();
    // A project of its own: cargo has one output for all packages of one name, and other tests build theirs meanwhile.
    udfs.op("kept", "hello", HELLO);
    udfs.host();
    // No build is allowed: what was built is enough.
    let host = udfs.host_with(|config| config.no_build = true);
    assert_eq!(call(&host, "kept.hello", &[]).unwrap(), "\"hello world\"");

    udfs.write("kept/hello/src/lib.rs", &HELLO.replace("hello {name}", "good day {name}"));
    let host = udfs.host_with(|config| config.no_build = true);
    assert_refused(&host, "kept.hello", "changed since it was");
    assert_eq!(call(&udfs.host(), "kept.hello", &[]).unwrap(), "\"good day world\"");
    // The copy is gone, the stamp is not.
    fs::remove_dir_all(&udfs.config().cache_dir).unwrap();
    assert_eq!(call(&udfs.host(), "kept.hello", &[]).unwrap(), "\"good day world\"");
}

#[test]
fn a_folder_of_built_operations_needs_no_cargo() {
    let udfs = Udfs::new();
    udfs.op("p", "hello", HELLO);
    let built = udfs.host().catalog.entries()[0].clone();
    let host::plugins::EntryState::Ready(loaded) = built.state() else {
        panic!("{:?}", built.view())
    };
    let whole = fs::read(&loaded.artifact).unwrap();

    let packed = tempfile::tempdir().unwrap();
    let place = |op: &str| -> PathBuf {
        let folder = packed.path().join("p").join(op);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("spec.md"), format!("# {op}\n")).unwrap();
        folder.join("lib.so")
    };
    fs::write(place("hello"), &whole).unwrap();
    fs::write(place("cut"), &whole[..whole.len() / 2]).unwrap();
    fs::write(place("empty"), "").unwrap();
    fs::write(place("text"), "not a library").unwrap();
    fs::write(place("renamed"), &whole).unwrap();
    symlink(packed.path().join("nowhere"), place("dangling")).unwrap();
    fs::create_dir(place("folder")).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.split_whitespace().find(|word| word.contains("/libc.so")).unwrap();
    fs::copy(libc, place("ordinary")).unwrap();

    let empty = Udfs::new();
    let host = empty.host_with(|config| {
        config.udfs = Vec::new();
        config.plugins = vec![packed.path().to_owned()];
    });
    assert_eq!(call(&host, "p.hello", &[("name", "pack")]).unwrap(), "\"hello pack\"");
    for (op, words) in [
        ("cut", "cut short"),
        ("empty", "not a shared library"),
        ("text", "not a shared library"),
        ("renamed", "not called like its folder"),
        ("dangling", "not there"),
        ("folder", "not a regular file"),
        ("ordinary", "not a plugin"),
    ] {
        assert_refused(&host, &format!("p.{op}"), words);
    }
}

#[test]
fn a_missing_search_folder_is_said_and_the_host_starts() {
    let udfs = Udfs::new();
    let missing = udfs.root().join("missing");
    let host = udfs.host_with(|config| config.udfs = vec![missing.clone()]);
    assert!(host.catalog.list().is_empty());
    assert!(
        host.catalog.problems().iter().any(|problem| problem.place == missing),
        "{:?}",
        host.catalog.problems()
    );
}
