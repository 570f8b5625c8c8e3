//! A question asked of the person at a terminal: numbered options, free text, a comment, and nothing that waits where
//! nobody sits.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::runs::{RunFolder, call};

/// A command on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// `udf-host run-feedback` with these words, in the folder.
    fn run(folder: &RunFolder, words: &[&str]) -> Terminal {
        let terminal =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let side = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        let child = Command::new(&built().host)
            .args(["--only", "--udfs"])
            .arg(&built().udfs)
            .arg("run-feedback")
            .args(words)
            .current_dir(&folder.root)
            .env("XDG_CACHE_HOME", &built().cache)
            .env("RUN_FEEDBACK_POSTER", "none")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("USER", "alex")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let keyboard = File::from(terminal);
        let (mut glass, screen) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Ends with an error when the last program has left the terminal.
            while let Ok(count @ 1..) = glass.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, keyboard, screen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).replace("\r\n", "\n")
    }

    /// Waits for the last thing shown to be this.
    #[track_caller]
    fn shows(&self, prompt: &str) {
        let seen = wait_until(Duration::from_secs(120), prompt, || {
            self.text().ends_with(prompt).then_some(())
        });
        assert!(seen.is_some(), "no {prompt:?} at the end of {}", self.text());
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// The exit status and all that was shown.
    fn ends(mut self) -> (i32, String) {
        let exit = wait_until(Duration::from_secs(60), "the end", || {
            self.child.try_wait().unwrap().map(|status| status.code().unwrap())
        });
        let exit = exit.unwrap_or_else(|| panic!("it goes on: {}", self.text()));
        // What was written last may still be on its way.
        thread::sleep(Duration::from_millis(200));
        (exit, self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn ask<'a>(run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["request-feedback", "--run-id", run, "--phase", "build", "--step", "layout"];
    [&words[..], more].concat()
}

fn entry(folder: &RunFolder, run: &str) -> Value {
    folder.state(run)["feedback_history"][0].clone()
}

#[test]
fn a_number_and_a_comment_answer_it() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let context = r#"{"summary": "Two tables.", "artifact_path": "docs/layout.md"}"#;
    let more = [
        "--type",
        "review",
        "--prompt",
        "Is it \u{1b}[31mok?",
        "--context",
        context,
        "--step-index",
        "3",
    ];
    let mut terminal = Terminal::run(&folder, &ask(&run, &more));
    terminal.shows("Answer, as word or number (empty to leave it open): ");
    // What comes before is the progress of the build.
    let shown = terminal.text().split_once("🎯").unwrap().1.to_owned();
    for line in [
        "❓ review needed in build:layout",
        "Is it [31mok?",
        "Two tables.",
        "**Artifact**: [layout.md](docs/layout.md)",
        "  1. approve - Continue to next phase",
        "  2. request_changes - Provide feedback for revision",
        "  3. reject - Cancel this workflow run",
        "Status: awaiting_feedback",
    ] {
        assert!(shown.lines().any(|said| said == line), "no {line:?} in {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let state = folder.state(&run);
    assert_eq!(state["status"], "awaiting_feedback", "it stands before anybody has answered");
    assert_eq!(state["feedback_request"]["notification_sent"]["cli"], true);
    terminal.types("4\n");
    // Not an option: asked again, and at once.
    terminal.shows("one of: approve, request_changes, reject\nAnswer, as word or number (empty to leave it open): ");
    terminal.types("Maybe\n");
    terminal.shows("Answer, as word or number (empty to leave it open): ");
    terminal.types("2\n");
    terminal.shows("Comment (empty for none): ");
    terminal.types("Split it, please\n");
    let (exit, shown) = terminal.ends();
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.ends_with("Next: Workflow will resume from layout\n"), "{shown}");
    let entry = entry(&folder, &run);
    assert_eq!(entry["response"], "request_changes");
    assert_eq!(entry["comment"], "Split it, please");
    assert_eq!(entry["provided_by"], json!({"user": "alex", "source": "cli"}));
    assert_eq!(
        (&entry["action"], &entry["resume_point"]["step_index"]),
        (&json!("revise"), &json!(3))
    );
}

#[test]
fn a_clarification_takes_any_text() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let more = ["--type", "clarification", "--prompt", "Which region?"];
    let mut terminal = Terminal::run(&folder, &ask(&run, &more));
    terminal.shows("Answer (empty to leave it open): ");
    terminal.types("EMEA, and 2 others\n");
    terminal.shows("Comment (empty for none): ");
    terminal.types("\n");
    let (exit, shown) = terminal.ends();
    assert_eq!(exit, 0, "{shown}");
    assert_eq!(entry(&folder, &run)["response"], "EMEA, and 2 others");
    assert_eq!(entry(&folder, &run).get("comment"), None);
}

#[test]
fn whoever_says_nothing_leaves_it_open() {
    let folder = RunFolder::new();
    for (number, keys) in ["\n", "\u{4}"].into_iter().enumerate() {
        let run = folder.add(number, "7");
        let mut terminal =
            Terminal::run(&folder, &ask(&run, &["--type", "approval", "--prompt", "Ship it?"]));
        terminal.shows("empty to leave it open): ");
        terminal.types(keys);
        let (exit, shown) = terminal.ends();
        assert_eq!(exit, 0, "{shown}");
        assert_eq!(folder.state(&run)["status"], "awaiting_feedback");
    }
}

#[test]
fn whoever_is_slower_is_told_who_was_first() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let host = HostProcess::start(
        &HostOptions::new().cwd(&folder.root).env("RUN_FEEDBACK_POSTER", "none"),
    );
    let mut terminal =
        Terminal::run(&folder, &ask(&run, &["--type", "approval", "--prompt", "Ship it?"]));
    terminal.shows("empty to leave it open): ");
    let request = folder.state(&run)["feedback_request"]["request_id"].clone();
    let answer = json!({"run_id": run, "request_id": request, "response": "reject", "user": "kim"});
    assert_eq!(call(&host, "process_response", &answer)["status"], "success");
    terminal.types("1\n");
    terminal.shows("Comment (empty for none): ");
    terminal.types("\n");
    let (exit, shown) = terminal.ends();
    assert_eq!(exit, 3, "{shown}");
    assert!(shown.contains(r#"answered: \"reject\" by \"kim\""#), "{shown}");
    assert_eq!(entry(&folder, &run)["response"], "reject");
    assert_eq!(folder.state(&run)["feedback_history"].as_array().unwrap().len(), 1);
}
