#![expect(clippy::disallowed_methods, reason = "tests lay out folders as authors leave them")]

use super::*;

fn root_of(folder: &Path) -> PathBuf {
    let root = folder.join("udfs");
    fs::create_dir_all(&root).unwrap();
    root
}

#[track_caller]
fn make(root: &Path, text: &str) -> Result<PathBuf, HostError> {
    let name = Name::parse(text)?;
    refuse_clash(root, &name)?;
    let new = New { name: text.to_owned(), workflow: false, json: false };
    write(root, &name, new.files(&name))
}

#[test]
fn names_that_cannot_be_built_are_refused_in_words() {
    for (name, fragment) in [
        ("greet", "not PROJECT/OP"),
        ("p/", "cannot name an operation"),
        ("/op", "cannot name a project"),
        ("p/a/b", "cannot name an operation"),
        ("-p/op", "cannot name a project"),
        ("9p/op", "cannot name a project"),
        ("../op", "cannot name a project"),
        ("p/../x", "cannot name an operation"),
        ("p/Op", "cannot name an operation"),
        ("p/a-b", "cannot name an operation"),
        ("p/9a", "cannot name an operation"),
        ("p/match", "no word of the language"),
        ("p/common", "another meaning"),
        ("p/é", "cannot name an operation"),
    ] {
        let message = Name::parse(name).unwrap_err().to_string();
        assert!(message.contains(fragment), "{name}: {message}");
    }
    assert_eq!(Name::parse("my-project/get_it").unwrap().package(), "udf-my-project-get_it");
}

#[test]
fn a_folder_appears_whole_with_its_project() {
    let home = tempfile::tempdir().unwrap();
    let root = root_of(home.path());
    let folder = make(&root, "my-project/greet").unwrap();
    assert_eq!(folder, root.join("my-project/greet"));
    let manifest: toml::Table =
        fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("udf-my-project-greet"));
    assert!(fs::read_to_string(folder.join("src/lib.rs")).unwrap().contains("fn greet("));
    assert!(fs::read_to_string(folder.join("spec.md")).unwrap().starts_with("# greet\n"));
    assert_eq!(workspace(&root.join("my-project")).unwrap(), "default");
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn a_project_that_is_there_keeps_its_manifest_or_gets_one() {
    let home = tempfile::tempdir().unwrap();
    let root = root_of(home.path());
    fs::create_dir_all(root.join("own")).unwrap();
    fs::write(root.join("own/project.toml"), "workspace = \"_core\"\n").unwrap();
    fs::create_dir_all(root.join("bare")).unwrap();
    make(&root, "own/one").unwrap();
    make(&root, "bare/one").unwrap();
    assert_eq!(workspace(&root.join("own")).unwrap(), "_core");
    assert_eq!(workspace(&root.join("bare")).unwrap(), "default");
}

#[test]
fn clashing_names_are_refused_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let root = root_of(home.path());
    make(&root, "a-b/get_it").unwrap();
    fs::create_dir_all(root.join("solo")).unwrap();
    fs::write(root.join("solo/Cargo.toml"), "").unwrap();
    for name in ["a-b/get_it", "a_b/get_it", "main/solo"] {
        let message = make(&root, name).unwrap_err().to_string();
        assert!(message.contains("there already"), "{name}: {message}");
    }
    assert!(!root.join("a_b").exists() && !root.join("main").exists());
    make(&root, "a-b/get_it_too").unwrap();
}

#[test]
fn a_workflow_has_its_agents_and_belongs_to_one_project() {
    let home = tempfile::tempdir().unwrap();
    let root = root_of(home.path());
    let new = New { name: "workflows/essay".to_owned(), workflow: true, json: false };
    let name = Name::parse(&new.name).unwrap();
    let folder = write(&root, &name, new.files(&name)).unwrap();
    for kind in ["worker", "checker"] {
        crate::agent::AgentType::read(&folder, kind).unwrap();
    }
    let text = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
    assert!(text.contains("fn essay(") && !text.contains('@'), "{text}");
    let author = text.split("#[cfg(test)]").next().unwrap();
    let (_, work) = author.split_once("struct Work;").unwrap();
    assert!(work.lines().count() <= 42, "{} lines", work.lines().count());
    let message = new.check_place(&Name::parse("essays/essay").unwrap()).unwrap_err().to_string();
    assert!(message.contains("new workflows/essay --workflow"), "{message}");
}
