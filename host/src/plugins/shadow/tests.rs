#![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

use super::*;

const ROOT_MANIFEST: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"host\", \"sdk\", \"udfs/*/*\"]\n\n[workspace.dependencies]\nsdk = { path = \"sdk\" }\n";

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in [
            ("checkout/Cargo.toml", ROOT_MANIFEST),
            ("checkout/Cargo.lock", "# one\n"),
            ("checkout/sdk/Cargo.toml", ""),
            ("checkout/host/Cargo.toml", ""),
            ("checkout/udfs/p/a/Cargo.toml", ""),
            ("checkout/udfs/p/common/Cargo.toml", ""),
            ("checkout/udfs/p/broken/x", ""),
            ("checkout/target/x", ""),
        ] {
            tree.write(path, text);
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn member(&self, root: &str, project: &str, folder: &str) -> Member {
        Member::new(&self.at("checkout"), &self.at(root), project, &self.at(folder))
    }

    fn sync(&self, members: Vec<Member>) -> Shadow {
        Shadow::sync(&self.at("shadow"), &self.at("checkout"), members, |_| {
            panic!("nobody else is there")
        })
        .unwrap()
    }
}

#[test]
fn only_the_members_are_there_and_the_rest_of_the_checkout_is_linked() {
    let tree = Tree::new();
    let a = tree.member("checkout/udfs", "p", "checkout/udfs/p/a");
    let common = tree.member("checkout/udfs", "p", "checkout/udfs/p/common");
    let shadow = tree.sync(vec![a.clone(), common]);
    let root = shadow.root();
    assert_eq!(fs::read_link(root.join("sdk")).unwrap(), tree.at("checkout/sdk"));
    assert_eq!(fs::read_link(root.join("udfs/p/a")).unwrap(), tree.at("checkout/udfs/p/a"));
    assert!(!root.join("udfs/p/broken").exists() && !root.join("target").exists());
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\"udfs/p/a\"") && !manifest.contains('*'), "{manifest}");
    drop(shadow);

    // Again with one member less and a stray file: both go, nothing else is touched.
    tree.write("shadow/udfs/q/stray", "");
    let shadow = tree.sync(vec![a]);
    assert!(
        !shadow.root().join("udfs/p/common").exists() && !shadow.root().join("udfs/q").exists()
    );
    assert!(shadow.root().join("udfs/p/a/Cargo.toml").exists());
    assert!(
        tree.at("checkout/udfs/p/common/Cargo.toml").exists(),
        "removing a link is not removing its target"
    );
}

#[test]
fn a_crate_from_outside_gets_a_manifest_whose_paths_lead_to_the_shadow() {
    let tree = Tree::new();
    let sdk = tree.at("checkout/sdk");
    tree.write(
        "own/q/b/Cargo.toml",
        &format!(
            "[package]\nname = \"udf-q-b\"\n[dependencies]\nsdk = {{ path = \"{}\", features = [\"x\"] }}\nq-common = {{ path = \"../common\" }}\nfar = {{ path = \"../../../far\" }}\n[workspace]\n[profile.release]\npanic = \"abort\"\n",
            sdk.display()
        ),
    );
    tree.write("own/q/b/src/lib.rs", "");
    tree.write("own/q/b/target/junk", "");
    tree.write("own/q/common/Cargo.toml", "");
    tree.write("far/Cargo.toml", "");
    let b = tree.member("own", "q", "own/q/b");
    let common = tree.member("own", "q", "own/q/common");
    let shadow = tree.sync(vec![b.clone(), common.clone()]);
    let place = shadow.root().join(&b.place);
    assert!(b.place.starts_with("ext"));
    let manifest: toml::Table =
        fs::read_to_string(place.join("Cargo.toml")).unwrap().parse().unwrap();
    let path = |name: &str| manifest["dependencies"][name]["path"].as_str().unwrap().to_owned();
    assert_eq!(path("sdk"), shadow.root().join("sdk").to_string_lossy());
    assert_eq!(path("q-common"), shadow.root().join(&common.place).to_string_lossy());
    assert_eq!(path("far"), tree.at("far").to_string_lossy());
    assert!(manifest.get("workspace").is_none() && manifest.get("profile").is_none());
    assert_eq!(fs::read_link(place.join("src")).unwrap(), tree.at("own/q/b/src"));
    assert!(!place.join("target").exists());

    let manifest_path = place.join("Cargo.toml");
    assert_eq!(shadow.member_of_manifest(&manifest_path), Some(&b));
    let said =
        format!("error at `{}` and {}/src/lib.rs:1:1", manifest_path.display(), b.place.display());
    assert_eq!(shadow.members_named_in(&said), [&b]);
    let own = tree.at("own/q/b");
    assert_eq!(
        shadow.real_paths(&said),
        format!("error at `{}/Cargo.toml` and {}/src/lib.rs:1:1", own.display(), own.display())
    );
}

#[test]
fn operations_of_one_name_in_two_roots_have_two_artifacts() {
    let tree = Tree::new();
    let names = ["one", "two"].map(|root| {
        let text = "[package]\nname = \"udf-q-b\"\n[lib]\ncrate-type = [\"cdylib\"]\n";
        tree.write(&format!("{root}/q/b/Cargo.toml"), text);
        let member = tree.member(root, "q", &format!("{root}/q/b"));
        let shadow = tree.sync(vec![member.clone()]);
        let place = shadow.root().join(&member.place).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(place).unwrap().parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("udf-q-b"));
        manifest["lib"]["name"].as_str().unwrap().to_owned()
    });
    assert!(names.iter().all(|name| name.starts_with("udf_q_b_")), "{names:?}");
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_crate_directly_in_udfs_becomes_one_of_project_main() {
    let tree = Tree::new();
    tree.write(
        "checkout/udfs/alone/Cargo.toml",
        "[package]\nname = \"udf-main-alone\"\n[dependencies]\nsdk = { path = \"../../sdk\" }\n",
    );
    tree.write("checkout/udfs/alone/src/lib.rs", "");
    let alone = tree.member("checkout/udfs", "main", "checkout/udfs/alone");
    let shadow = tree.sync(vec![alone.clone()]);
    assert_eq!(alone.place, Path::new("udfs/main/alone"));
    let manifest = fs::read_to_string(shadow.root().join("udfs/main/alone/Cargo.toml")).unwrap();
    assert!(manifest.contains(&*shadow.root().join("sdk").to_string_lossy()), "{manifest}");
}

#[test]
fn one_name_does_not_stand_for_a_longer_one() {
    let tree = Tree::new();
    tree.write("checkout/udfs/p/a-more/Cargo.toml", "");
    let (a, more) = (
        tree.member("checkout/udfs", "p", "checkout/udfs/p/a"),
        tree.member("checkout/udfs", "p", "checkout/udfs/p/a-more"),
    );
    let shadow = tree.sync(vec![a, more.clone()]);
    let said = format!("failed to parse `{}/udfs/p/a-more/Cargo.toml`", shadow.root().display());
    assert_eq!(shadow.members_named_in(&said), [&more]);
}

#[test]
fn the_lock_file_follows_the_checkouts_and_keeps_its_own_additions() {
    let tree = Tree::new();
    let lock = tree.at("shadow/Cargo.lock");
    drop(tree.sync(Vec::new()));
    assert_eq!(fs::read_to_string(&lock).unwrap(), "# one\n");
    tree.write("shadow/Cargo.lock", "# one\n# added\n");
    drop(tree.sync(Vec::new()));
    assert_eq!(fs::read_to_string(&lock).unwrap(), "# one\n# added\n");
    tree.write("checkout/Cargo.lock", "# two\n");
    drop(tree.sync(Vec::new()));
    assert_eq!(fs::read_to_string(&lock).unwrap(), "# two\n");
}

#[test]
fn a_second_host_waits_and_says_for_what() {
    let tree = Tree::new();
    let first = tree.sync(Vec::new());
    let (root, checkout) = (tree.at("shadow"), tree.at("checkout"));
    let (sender, receiver) = std::sync::mpsc::channel();
    let second = std::thread::spawn(move || {
        Shadow::sync(&root, &checkout, Vec::new(), |lock| sender.send(lock.to_owned()).unwrap())
            .unwrap();
    });
    assert_eq!(receiver.recv().unwrap(), tree.at("shadow/.lock"));
    drop(first);
    second.join().unwrap();
}
