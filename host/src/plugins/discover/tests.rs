#![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Lays out files (a path that ends in `/` is a folder) and walks the folders as roots, the first one named.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = tree.0.path().join(path);
            if path.to_string_lossy().ends_with('/') {
                fs::create_dir_all(&path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
            }
        }
        tree
    }

    fn op(self, place: &str, package: &str) -> Self {
        let folder = self.0.path().join(place);
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), cargo_toml(package)).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
        fs::write(folder.join("spec.md"), "# It\n").unwrap();
        self
    }

    fn walk(&self, roots: &[(&str, RootKind, bool)]) -> Discovery {
        let roots: Vec<Root> = roots
            .iter()
            .map(|(path, kind, named)| Root {
                path: self.0.path().join(path),
                kind: *kind,
                named: *named,
            })
            .collect();
        discover(&roots)
    }

    fn sources(&self) -> Discovery {
        self.walk(&[("", RootKind::Sources, true)])
    }
}

fn cargo_toml(package: &str) -> String {
    format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\n[lib]\ncrate-type = [\"cdylib\"]\n"
    )
}

fn addresses(found: &Discovery) -> Vec<String> {
    found.ops.iter().map(|op| op.address.to_string()).collect()
}

#[track_caller]
fn refusal(found: &Discovery, op: &str) -> Box<Refusal> {
    let op = found.ops.iter().find(|found| found.address.to_string() == op).expect("it is listed");
    op.source.clone().expect_err("it is refused")
}

#[test]
fn operations_are_known_by_their_place() {
    let tree = Tree::new(&[
        ("p/project.toml", "workspace = \"_core\"\n[udfs.b]\ntimeout = 5\n"),
        ("p/widgets/inbox.json", "{}"),
        ("p/.git/x", ""),
        (".cache/x/y", ""),
        ("p/common/Cargo.toml", "[package]\nname = \"p-common\"\n"),
        ("README.md", "not a folder"),
    ])
    .op("p/a", "udf-p-a")
    .op("p/b", "udf-p-b")
    .op("alone", "udf-main-alone")
    .op("q/c", "udf-q-c");
    let found = tree.sources();
    assert_eq!(addresses(&found), ["_core.p.a", "_core.p.b", "default.q.c", "default.main.alone"]);
    assert!(found.ops.iter().all(|op| op.source.is_ok()), "{found:?}");
    assert_eq!(found.ops[1].settings.timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(found.libraries.len(), 1);
    assert_eq!(found.problems, []);
}

#[test]
fn a_broken_folder_is_listed_with_reason_and_remedy_and_the_others_stay() {
    let cdylib = cargo_toml("udf-p-bad");
    for (name, files, want) in [
        ("no Cargo.toml", vec![("p/bad/src/lib.rs", "")], "no Cargo.toml"),
        ("empty folder", vec![("p/bad/", "")], "no Cargo.toml"),
        ("half-written manifest", vec![("p/bad/Cargo.toml", "[package\nname")], "not valid TOML"),
        (
            "no package",
            vec![("p/bad/Cargo.toml", "[lib]\ncrate-type = [\"cdylib\"]")],
            "its package is no name",
        ),
        ("manifest is a folder", vec![("p/bad/Cargo.toml/x", "")], "cannot be read"),
        (
            "no source",
            vec![("p/bad/Cargo.toml", &*cdylib), ("p/bad/spec.md", "# x")],
            "no src/lib.rs",
        ),
        (
            "a spec.md, but no cdylib",
            vec![("p/bad/Cargo.toml", "[package]\nname = \"udf-p-bad\""), ("p/bad/spec.md", "")],
            "its Cargo.toml makes no cdylib",
        ),
        (
            "a spec.md, but a library of another kind",
            vec![
                ("p/bad/Cargo.toml", "[package]\nname = \"x\"\n[lib]\ncrate-type = [\"rlib\"]"),
                ("p/bad/spec.md", "# x"),
            ],
            "its Cargo.toml makes no cdylib",
        ),
        (
            "no spec.md",
            vec![("p/bad/Cargo.toml", &*cdylib), ("p/bad/src/lib.rs", "")],
            "no spec.md",
        ),
        (
            "empty spec.md",
            vec![("p/bad/Cargo.toml", &*cdylib), ("p/bad/src/lib.rs", ""), ("p/bad/spec.md", "\n")],
            "spec.md is empty",
        ),
        (
            "wrong package",
            vec![(
                "p/bad/Cargo.toml",
                "[package]\nname = \"bad\"\n[lib]\ncrate-type = [\"cdylib\"]",
            )],
            "its package is `bad`, not `udf-p-bad`",
        ),
        (
            "renamed library",
            vec![(
                "p/bad/Cargo.toml",
                "[package]\nname = \"udf-p-bad\"\n[lib]\nname = \"x\"\ncrate-type = [\"cdylib\"]",
            )],
            "a name of its own",
        ),
    ] {
        let found = Tree::new(&files).op("p/good", "udf-p-good").sources();
        let refusal = refusal(&found, "default.p.bad");
        assert!(refusal.reason.contains(want), "{name}: {refusal:?}");
        assert!(!refusal.remedy.is_empty() && !refusal.files.is_empty(), "{name}: {refusal:?}");
        assert!(
            found.ops.iter().any(|op| &*op.address.op == "good" && op.source.is_ok()),
            "{name}"
        );
    }
}

#[test]
fn a_broken_project_file_refuses_its_operations_only() {
    let tree =
        Tree::new(&[("p/project.toml", "workspace = ")]).op("p/a", "udf-p-a").op("q/b", "udf-q-b");
    let found = tree.sources();
    assert!(refusal(&found, "default.p.a").reason.contains("project.toml"), "{found:?}");
    assert!(found.ops.iter().any(|op| &*op.address.project == "q" && op.source.is_ok()));
}

#[test]
fn unknown_keys_and_settings_of_nobody_are_named() {
    let text = "colour = 1\n[udfs.a]\nspeed = 1\n[udfs.gone]\ntimeout = 1\n";
    let found = Tree::new(&[("p/project.toml", text)]).op("p/a", "udf-p-a").sources();
    assert!(found.ops[0].source.is_ok());
    let reasons: Vec<_> = found.problems.iter().map(|problem| problem.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for (reason, want) in reasons.iter().zip(["`colour`", "`udfs.a.speed`", "[udfs.gone]"]) {
        assert!(reason.contains(want), "{reason}");
    }
}

#[test]
fn an_alias_that_is_taken_or_leads_nowhere_is_named() {
    let tree = Tree::new(&[(
        "workflows/project.toml",
        "[aliases]\nletter = \"essay\"\nessay = \"novel\"\npoem = \"song\"\n",
    )])
    .op("workflows/essay", "udf-workflows-essay")
    .op("workflows/novel", "udf-workflows-novel");
    let found = tree.sources();
    let reasons: Vec<&str> = found.problems.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "the alias `essay` is taken; it has no effect",
            "the alias `poem` leads to `song`, which is not there"
        ]
    );
}

#[test]
fn names_that_meet_in_one_artifact_are_refused_together() {
    for (name, places, want) in [
        (
            "dash and underscore",
            [("p/a-b", "udf-p-a-b"), ("p/a_b", "udf-p-a_b")],
            "one artifact name",
        ),
        ("project and op", [("p/a-b", "udf-p-a-b"), ("p-a/b", "udf-p-a-b")], "one artifact name"),
        ("one op twice", [("x", "udf-main-x"), ("main/x", "udf-main-x")], "2 folders claim"),
    ] {
        let mut tree = Tree::new(&[]).op("q/fine", "udf-q-fine");
        for (place, package) in places {
            tree = tree.op(place, package);
        }
        let found = tree.sources();
        let refused: Vec<_> = found.ops.iter().filter_map(|op| op.source.as_ref().err()).collect();
        assert_eq!(refused.len(), 2, "{name}: {found:?}");
        for refusal in refused {
            assert!(refusal.reason.contains(want), "{name}: {refusal:?}");
            for (place, _) in places {
                assert!(refusal.files.contains(&tree.0.path().join(place)), "{name}: {refusal:?}");
            }
        }
    }
}

#[test]
fn a_named_root_clashes_and_an_implied_one_gives_way() {
    let tree =
        Tree::new(&[]).op("one/p/a", "udf-p-a").op("two/p/a", "udf-p-a").op("two/p/b", "udf-p-b");
    let found = tree.walk(&[("one", RootKind::Sources, true), ("two", RootKind::Sources, true)]);
    assert_eq!(found.ops.iter().filter(|op| op.source.is_err()).count(), 2);
    let found = tree.walk(&[("one", RootKind::Sources, true), ("two", RootKind::Sources, false)]);
    assert_eq!(addresses(&found), ["default.p.a", "default.p.b"]);
    assert!(found.ops.iter().all(|op| op.source.is_ok()));
    assert_eq!(found.ops[0].folder, tree.0.path().join("one/p/a"));
    assert!(found.problems[0].reason.contains("p.a"), "{:?}", found.problems);
}

#[test]
fn names_that_cannot_be_addressed_are_refused() {
    let found = Tree::new(&[]).op("p/a.b", "udf-p-a.b").op("p/-x", "udf-p--x").sources();
    for op in &found.ops {
        assert!(
            op.source.as_ref().unwrap_err().reason.contains("cannot name an operation"),
            "{op:?}"
        );
    }
    assert_eq!(found.ops.len(), 2);
}

#[test]
fn of_libraries_of_one_name_in_two_roots_the_first_is_built() {
    let common = "[package]\nname = \"p-common\"\n";
    let needs = |package: &str| {
        format!("{}[dependencies]\np-common = {{ path = \"../common\" }}\n", cargo_toml(package))
    };
    let tree =
        Tree::new(&[("one/p/common/Cargo.toml", common), ("two/p/common/Cargo.toml", common)])
            .op("one/p/a", "udf-p-a")
            .op("two/p/a", "udf-p-a")
            .op("two/p/b", "udf-p-b")
            .op("two/q/c", "udf-q-c");
    for (place, package) in [("one/p/a", "udf-p-a"), ("two/p/a", "udf-p-a"), ("two/p/b", "udf-p-b")]
    {
        fs::write(tree.0.path().join(place).join("Cargo.toml"), needs(package)).unwrap();
    }
    let found = tree.walk(&[("one", RootKind::Sources, true), ("two", RootKind::Sources, false)]);
    let libraries: Vec<_> = found.libraries.iter().map(|library| library.folder.clone()).collect();
    assert_eq!(libraries, [tree.0.path().join("one/p/common")]);
    let answers = |op: &FoundOp| op.source.is_ok().then(|| op.address.to_string());
    let answering: Vec<_> = found.ops.iter().filter_map(answers).collect();
    assert_eq!(answering, ["default.p.a", "default.q.c"]);
    let refusal = refusal(&found, "default.p.b");
    assert!(refusal.reason.contains("the library `p-common`"), "{refusal:?}");
    assert_eq!(refusal.files.len(), 2);
}

#[test]
fn links_count_as_what_they_lead_to_and_dangling_ones_are_named() {
    let tree = Tree::new(&[("p/", "")]).op("elsewhere/real/a", "udf-p-a");
    symlink(tree.0.path().join("elsewhere/real/a"), tree.0.path().join("p/a")).unwrap();
    symlink(tree.0.path().join("nowhere"), tree.0.path().join("p/gone")).unwrap();
    let found = tree.walk(&[("", RootKind::Sources, true)]);
    assert!(
        found.ops.iter().any(|op| op.address.to_string() == "default.p.a" && op.source.is_ok()),
        "{found:?}"
    );
    assert!(
        found.problems.iter().any(|problem| problem.place.ends_with("p/gone")),
        "{:?}",
        found.problems
    );
}

#[test]
fn a_prebuilt_folder_holds_artifacts_instead_of_crates() {
    let tree = Tree::new(&[
        ("p/project.toml", "workspace = \"w\""),
        ("p/a/lib.so", "x"),
        ("p/a/spec.md", "# a"),
        ("p/b/libudf_p_b.so", "x"),
        ("p/b/spec.md", "# b"),
        ("p/two/x.so", "x"),
        ("p/two/y.so", "x"),
        ("p/two/spec.md", "# two"),
        ("p/nospec/lib.so", "x"),
        ("alone/lib.so", "x"),
        ("alone/spec.md", "# alone"),
    ]);
    let found = tree.walk(&[("", RootKind::Prebuilt, true)]);
    assert_eq!(
        addresses(&found),
        ["w.p.a", "w.p.b", "w.p.nospec", "w.p.two", "default.main.alone"]
    );
    assert_eq!(
        found.ops[1].source,
        Ok(Source::Prebuilt { library: tree.0.path().join("p/b/libudf_p_b.so"), packed: None })
    );
    assert!(refusal(&found, "w.p.nospec").reason.contains("no spec.md"));
    assert!(refusal(&found, "w.p.two").reason.contains("no .so file"));
}
