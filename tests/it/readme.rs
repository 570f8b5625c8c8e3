//! The README is pasted as it stands, and answers as it says.

use std::process::{Command, Stdio};

use regex::Regex;
use serde_json::Value;

use crate::support::build::built;
use crate::support::{checkout, parse};
use pattern::Scope;

/// A fenced block: its language and its text.
struct Block {
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let text = std::fs::read_to_string(checkout().join("README.md")).unwrap();
    let fence = Regex::new(r"(?ms)^```([a-z]*)\n(.*?)^```$").unwrap();
    let block = |found: regex::Captures<'_>| Block {
        language: found[1].to_owned(),
        text: found[2].to_owned(),
    };
    fence.captures_iter(&text).map(block).collect()
}

/// Between two commands' outputs.
const MARK: &str = "----- end of block -----";

#[test]
fn the_shell_blocks_of_the_readme_answer_as_it_says() {
    let blocks = blocks();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut script = String::from("set -euo pipefail\n");
    let mut wanted = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if block.language != "sh" {
            continue;
        }
        script += &block.text;
        script += &format!("\nprintf '\\n%s\\n' '{MARK}'\n");
        let expected = blocks.get(at + 1).filter(|next| next.language == "json");
        wanted.push((block.text.clone(), expected.map(|next| parse(&next.text))));
    }
    assert!(
        wanted.iter().filter(|(_, expected)| expected.is_some()).count() >= 4,
        "the README shows real output"
    );
    // The commands run where a clone would be, over the operations of this one and a folder of their own.
    let built = built();
    let binary = built.host.to_str().unwrap();
    for command in ["cargo run --release -q --", "cargo run --release --"] {
        script = script.replace(command, binary);
    }
    std::fs::create_dir(root.join("udfs")).unwrap();
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(&script).current_dir(&root).env("XDG_CACHE_HOME", &built.cache);
    shell.env_remove("OPENFUSED_APP_DIR_STATE").stdin(Stdio::null());
    let output = shell.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    let answers: Vec<&str> = stdout.split(MARK).collect();
    for ((command, expected), answer) in wanted.iter().zip(answers) {
        if let Some(expected) = expected {
            let compared = Scope::new(root.clone()).compare(
                &with_placeholders(expected),
                &parse(answer.trim()),
                "$",
            );
            assert_eq!(compared, Ok(()), "{command}\n{answer}");
        }
    }
}

/// Ids and times differ from one reader to the next.
fn with_placeholders(value: &Value) -> Value {
    let minted = Regex::new(r"card_[0-9a-f]{12}").unwrap();
    let time = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").unwrap();
    match value {
        Value::String(text) => {
            let text = minted.replace_all(text, "card_<hex:12>");
            Value::from(time.replace_all(&text, "<iso-ms>").into_owned())
        }
        Value::Array(items) => items.iter().map(with_placeholders).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| (key.clone(), with_placeholders(it))).collect()
        }
        other => other.clone(),
    }
}
