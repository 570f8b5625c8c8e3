use super::*;
use crate::plugins::pack::seal::Seal;

/// A folder that looks like a pack of one operation, `p/a`.
fn pack() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut files = BTreeMap::new();
    for (path, text) in [
        ("p/project.toml", "workspace = \"w\"\n"),
        ("p/a/spec.md", "# a\n"),
        ("p/a/agents/x.toml", "prompt = \"x\"\n"),
        ("p/a/lib.so", "not looked at here"),
    ] {
        put(folder.path(), path, text);
        files.insert(path.to_owned(), sha256(text.as_bytes()));
    }
    let op = PackedOp { address: "w.p.a".to_owned(), built_at: 7, sdk: "0.1.0".to_owned() };
    let manifest = PackManifest {
        format: FORMAT,
        interface: sdk::abi::INTERFACE_VERSION,
        target: TARGET.to_owned(),
        sdk: "0.1.0".to_owned(),
        operations: [("p/a".to_owned(), op)].into(),
        files,
    };
    put(folder.path(), MANIFEST, &serde_json::to_string(&manifest).unwrap());
    folder
}

#[expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]
fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_untouched_pack_is_taken_with_its_hashes_and_times() {
    let folder = pack();
    let seal = Seal::open(folder.path()).unwrap().unwrap();
    let packed = seal.check(&folder.path().join("p/a")).unwrap();
    assert_eq!(packed.sha256, sha256(b"not looked at here"));
    assert_eq!(packed.built_at, std::time::UNIX_EPOCH + std::time::Duration::from_secs(7));
    assert_eq!(seal.workspace(&folder.path().join("p/a")), Some("w"));
    assert_eq!(seal.problems(), []);
    assert!(
        Seal::open(&folder.path().join("p")).is_none(),
        "a folder without a manifest is no pack"
    );
}

#[test]
fn a_time_that_no_clock_tells_is_refused() {
    let folder = pack();
    let manifest = fs::read_to_string(folder.path().join(MANIFEST)).unwrap();
    let manifest = manifest.replace("\"built_at\":7", "\"built_at\":18446744073709551615");
    put(folder.path(), MANIFEST, &manifest);
    let seal = Seal::open(folder.path()).unwrap().unwrap();
    let refusal = seal.check(&folder.path().join("p/a")).unwrap_err();
    assert!(refusal.reason.contains("a time that no clock tells"), "{}", refusal.reason);
}

#[test]
fn every_change_of_a_file_is_seen_and_named() {
    for (name, path, text, want) in [
        ("spec changed", "p/a/spec.md", Some("# b\n"), "spec.md is not the file that was packed"),
        ("agent changed", "p/a/agents/x.toml", Some("prompt = \"y\"\n"), "x.toml is not the file"),
        ("agent added", "p/a/agents/y.toml", Some(""), "y.toml is there, but not in pack.json"),
        (
            "settings changed",
            "p/project.toml",
            Some("workspace = \"v\"\n"),
            "project.toml is not the file",
        ),
        ("spec gone", "p/a/spec.md", None, "spec.md of its pack is missing"),
        ("settings gone", "p/project.toml", None, "project.toml of its pack is missing"),
        ("library added", "p/a/other.so", Some(""), "other.so is there, but not in pack.json"),
    ] {
        let folder = pack();
        match text {
            Some(text) => put(folder.path(), path, text),
            None => fs::remove_file(folder.path().join(path)).unwrap(),
        }
        let seal = Seal::open(folder.path()).unwrap().unwrap();
        let refusal = seal.check(&folder.path().join("p/a")).unwrap_err();
        assert!(refusal.reason.contains(want), "{name}: {}", refusal.reason);
        assert_eq!(refusal.files, [folder.path().join(path)], "{name}");
        assert_eq!(refusal.expected.is_some(), want.contains("is not the file"), "{name}");
    }
}

#[test]
fn what_the_manifest_does_not_know_and_what_is_gone_are_both_said() {
    let folder = pack();
    put(folder.path(), "p/b/lib.so", "");
    put(folder.path(), "p/a/.directory", "a desktop's own file");
    let seal = Seal::open(folder.path()).unwrap().unwrap();
    assert!(seal.check(&folder.path().join("p/a")).is_ok(), "hidden files are nobody's");
    let refusal = seal.check(&folder.path().join("p/b")).unwrap_err();
    assert!(refusal.reason.contains("pack.json does not know it"), "{}", refusal.reason);
    fs::remove_dir_all(folder.path().join("p/a")).unwrap();
    assert_eq!(seal.problems()[0].place, folder.path().join("p/a"));
}

#[test]
fn a_pack_for_another_machine_interface_or_form_is_refused_with_what_was_expected() {
    let interface = format!("\"interface\":{}", sdk::abi::INTERFACE_VERSION);
    for (from, to, want) in [
        (TARGET, "riscv64gc-unknown-linux-gnu", "for another machine"),
        (interface.as_str(), "\"interface\":99", "for another interface"),
        ("\"format\":1", "\"format\":2", "it has form 2, this host reads form 1"),
        ("\"files\"", "\"filed\"", "broken"),
        ("{", "[", "broken"),
    ] {
        let folder = pack();
        let text = fs::read_to_string(folder.path().join(MANIFEST)).unwrap();
        assert!(text.contains(from));
        put(folder.path(), MANIFEST, &text.replacen(from, to, 1));
        let refusal = Seal::open(folder.path()).unwrap().unwrap_err();
        assert!(refusal.reason.contains(want), "{to}: {}", refusal.reason);
        assert_eq!(refusal.files, [folder.path().join(MANIFEST)]);
    }
}
