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
        let shown = blocks.get(at + 1).filter(|next| matches!(&*next.language, "json" | "text"));
        wanted.push((block.text.clone(), shown));
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
        let Some(Block { language, text }) = expected else { continue };
        let mut scope = Scope::new(root.clone());
        let compared = match language.as_str() {
            "json" => scope.compare(&with_placeholders(&parse(text)), &parse(answer.trim()), "$"),
            _ => scope.compare_text(&placeholders(text.trim()), answer.trim()),
        };
        assert_eq!(compared, Ok(()), "{command}\n{answer}");
    }
}

/// Ids, times and ports differ from one reader to the next.
fn with_placeholders(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(placeholders(text)),
        Value::Array(items) => items.iter().map(with_placeholders).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| (key.clone(), with_placeholders(it))).collect()
        }
        other => other.clone(),
    }
}

fn placeholders(text: &str) -> String {
    let mut text = text.to_owned();
    for (form, placeholder) in [
        (r"card_[0-9a-f]{12}", "card_<hex:12>"),
        (r"fr-\d{8}-[0-9a-f]{6}", "<id:fr-1>"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<iso-ms>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<iso-s>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<minute-utc>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<any>"),
    ] {
        text = Regex::new(form).unwrap().replace_all(&text, placeholder).into_owned();
    }
    text
}
