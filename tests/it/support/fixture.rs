//! Folders laid out from case data, and what they hold afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine;
use serde_json::{Map, Value};

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A regular file's bytes.
    File(Vec<u8>),
    /// A link's target.
    Link(String),
}

/// Writes `files` (relative path → content) below `root`.
///
/// Content is a text, `{"base64"}`, `{"symlink"}` or `{"dir": true}`; with `json`, any other value is written
/// as JSON in the two-space form, followed by `end`.
pub(crate) fn lay_out(root: &Path, files: &Map<String, Value>, json: Option<&str>) {
    for (relative, content) in files {
        let path = root.join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let special = |key: &str| if json.is_none() { content.get(key) } else { None };
        if special("dir").is_some() {
            fs::create_dir_all(&path).unwrap();
        } else if let Some(target) = special("symlink") {
            let target = target.as_str().unwrap().replace("${app_dir}", root.to_str().unwrap());
            symlink(target, &path).unwrap();
        } else {
            write(&path, &bytes(content, json));
        }
    }
}

/// The bytes a content value stands for.
pub(crate) fn bytes(content: &Value, json: Option<&str>) -> Vec<u8> {
    if let Value::String(text) = content {
        return text.clone().into_bytes();
    }
    if let Some(end) = json {
        return (serde_json::to_string_pretty(content).unwrap() + end).into_bytes();
    }
    let encoded = content["base64"].as_str().unwrap_or_else(|| panic!("unknown content {content}"));
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

/// Writes one file of a fixture.
#[expect(clippy::disallowed_methods, reason = "fixtures are laid out before a host runs")]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Every file and link below `root` by relative path.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<String, Found> {
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, Found>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let relative = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            found.insert(
                relative,
                Found::Link(fs::read_link(&path).unwrap().to_str().unwrap().to_owned()),
            );
        } else if kind.is_dir() {
            walk(root, &path, found);
        } else {
            found.insert(relative, Found::File(fs::read(&path).unwrap()));
        }
    }
}
