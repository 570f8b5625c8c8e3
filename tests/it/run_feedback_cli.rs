//! `udf-host run-feedback`: flags, standard output, banners and exit status of the scripts it stands in for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::build::built;
use crate::support::parse;
use crate::support::runs::RunFolder;

const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

/// What one command printed.
struct Ran {
    exit: i32,
    stdout: String,
    stderr: String,
}

/// Runs one operation in a directory, as a step of a script: nobody at the terminal.
fn run(cwd: &Path, words: &[impl AsRef<OsStr>]) -> Ran {
    let output = Command::new(&built().host)
        .args(["--only", "--udfs"])
        .arg(&built().udfs)
        .arg("run-feedback")
        .args(words)
        .current_dir(cwd)
        .env("XDG_CACHE_HOME", &built().cache)
        .env("USER", "alex")
        .env("RUN_FEEDBACK_POSTER", "none")
        .stdin(Stdio::null())
        .output()
        .expect("the host can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the host prints text");
    let exit = output.status.code().expect("the command ends by itself");
    Ran { exit, stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn with_run() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["init-run", "--run-id", RUN, "--work-id", "258"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(parse(&ran.stdout)["operation"], "init-run-directory");
    folder
}

fn state(folder: &TempDir) -> Value {
    let path = folder.path().join(".fractary/plugins/faber/runs").join(RUN).join("state.json");
    parse(&std::fs::read_to_string(path).unwrap())
}

/// Asks for an approval; the reply and what people read.
fn ask(folder: &TempDir, more: &[&str]) -> Ran {
    let mut words = vec!["request-feedback", "--run-id", RUN, "--phase", "build", "--step", "x"];
    words.extend(["--type", "approval", "--prompt", "Is it \u{1b}[31mok?"]);
    words.extend(more);
    run(folder.path(), &words)
}

#[test]
fn an_answer_goes_through_the_command_line() {
    let folder = with_run();
    let asked = ask(&folder, &["--step-index", "2"]);
    assert_eq!(asked.exit, 0, "{}", asked.stderr);
    let reply = parse(&asked.stdout);
    assert_eq!(
        reply["notifications"],
        json!({"cli": true, "issue_comment": false, "comment_url": null})
    );
    let id = reply["result"]["request_id"].as_str().unwrap();
    for line in [
        &*format!("Run ID: {RUN}"),
        "  1. approve - Continue to next phase",
        "Is it [31mok?",
        "Notifications: CLI ✓, Issue Comment ✗",
        "Status: awaiting_feedback",
    ] {
        assert!(asked.stderr.lines().any(|said| said == line), "no {line:?} in {}", asked.stderr);
    }
    let request = &state(&folder)["feedback_request"];
    assert_eq!(request["notification_sent"]["cli"], true);
    assert_eq!(request["prompt"], "Is it \u{1b}[31mok?", "stripped for the terminal alone");

    let answer = [
        "process-response",
        "--run-id",
        RUN,
        "--request-id",
        id,
        "--response",
        "Reject",
        "--user",
        "sam",
    ];
    let answered = run(folder.path(), &answer);
    assert_eq!(answered.exit, 0, "{}", answered.stderr);
    assert_eq!(parse(&answered.stdout)["result"]["action"], "abort");
    assert!(answered.stderr.ends_with("Next: Workflow will be cancelled\n"), "{}", answered.stderr);

    let again = run(folder.path(), &answer);
    assert_eq!((again.exit, again.stdout.as_str()), (3, ""));
    assert!(!again.stderr.contains("COMPLETED"), "{}", again.stderr);
    let json = again.stderr.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap();
    assert_eq!(parse(&json)["error"]["already_answered"]["response"], "reject");
}

#[test]
fn a_question_that_is_not_to_be_shown_is_not() {
    let folder = with_run();
    let asked = ask(&folder, &["--cli-prompt", "false", "--post-to-issue"]);
    assert_eq!(asked.exit, 0, "{}", asked.stderr);
    let reply = parse(&asked.stdout);
    assert_eq!(reply["notifications"]["cli"], false);
    assert_eq!(reply["warnings"][0]["code"], "ISSUE_COMMENT_FAILED");
    assert!(!asked.stderr.contains("1. approve"), "{}", asked.stderr);
    assert_eq!(state(&folder)["feedback_request"]["notification_sent"]["cli"], false);
}

#[test]
fn refusals_are_numbers_to_a_script() {
    let folder = with_run();
    for (words, exit, code) in [
        (&["emit-event", "--run-id", RUN, "--type", "feedback"][..], 1, "INVALID_EVENT_TYPE"),
        (&["emit-event", "--nope", "x"], 1, "INVALID_ARGUMENT"),
        (&["emit-event", "--run-id"], 1, "INVALID_ARGUMENT"),
        (&["list-runs", "--limit", "many"], 1, "INVALID_ARGUMENT"),
        (&["request-feedback", "--run-id", RUN], 1, "MISSING_FIELDS"),
        (
            &[
                "request-feedback",
                "--run-id",
                RUN,
                "--phase",
                "a",
                "--step",
                "b",
                "--type",
                "vote",
                "--prompt",
                "c",
            ],
            2,
            "INVALID_FEEDBACK_TYPE",
        ),
        (
            &["process-response", "--run-id", RUN, "--request-id", "r", "--response", "y"],
            3,
            "NOT_AWAITING_FEEDBACK",
        ),
    ] {
        let ran = run(folder.path(), words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (exit, ""), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("\"code\": \"{code}\"")), "{words:?}: {}", ran.stderr);
    }
    let runs = folder.path().join(".fractary/plugins/faber/runs");
    crate::support::fixture::write(&runs.join(RUN).join("state.json"), b"{oops");
    let low = run(folder.path(), &["emit-event", "--run-id", RUN, "--type", "checkpoint"]);
    let whole = ask(&folder, &[]);
    assert_eq!((low.exit, whole.exit), (2, 7), "{}{}", low.stderr, whole.stderr);
}

#[test]
fn arguments_are_taken_as_they_are_or_refused() {
    let folder = with_run();
    let emit = ["emit-event", "--run-id", RUN, "--type", "checkpoint", "--message"];
    let ran = run(folder.path(), &[&emit[..], &["--help"]].concat());
    assert_eq!((ran.exit, parse(&ran.stdout)["event_id"].as_u64()), (0, Some(1)), "{}", ran.stderr);
    let help = run(folder.path(), &["emit-event", "--run-id", RUN, "-h"]);
    assert!(help.exit == 0 && help.stdout.starts_with("Usage: "), "{}", help.stdout);

    let mut words: Vec<OsString> = emit.iter().map(OsString::from).collect();
    words.push(OsString::from_vec(b"caf\xe9".to_vec()));
    let odd = run(folder.path(), &words);
    assert_eq!((odd.exit, odd.stdout.as_str()), (1, ""), "{}", odd.stderr);
    assert_eq!(parse(&odd.stderr)["error"]["code"], "INVALID_ARGUMENT");
    assert_eq!(state(&folder)["last_event_id"], 1, "nothing was written");
}

/// 3 would be "nothing is waiting", 4 "another request is open": a step must not go on by a slip or a fault of ours.
#[test]
fn what_is_wrong_with_the_host_is_no_answer_of_an_operation() {
    let folder = with_run();
    let init = run(folder.path(), &["init-run", "--run-id"]);
    assert_eq!(parse(&init.stderr)["operation"], "init-run-directory", "as in its other replies");
    let slip = run(folder.path(), &["proces-response", "--run-id", RUN]);
    assert_eq!((slip.exit, slip.stdout.as_str()), (1, ""), "{}", slip.stderr);
    assert_eq!(parse(&slip.stderr)["error"]["code"], "UNKNOWN_OPERATION");
}

#[test]
fn texts_are_printed_as_they_are() {
    let folder = with_run();
    let id = run(folder.path(), &["generate-request-id"]);
    assert!(
        id.stdout.starts_with("fr-") && id.stdout.len() == "fr-20251206-a1b2c3\n".len(),
        "{}",
        id.stdout
    );
    let words = [
        "format-feedback-comment",
        "--run-id",
        RUN,
        "--request-id",
        "fr-1",
        "--type",
        "approval",
        "--phase",
        "build",
        "--step",
        "x",
        "--prompt",
        "--really?",
        "--options",
        r#"["approve"]"#,
        "--timestamp",
        "now",
    ];
    let comment = run(folder.path(), &words).stdout;
    assert!(
        comment.contains("\n\n--really?\n\n### Options\n\n1. **approve** - Continue"),
        "{comment}"
    );
    assert!(comment.ends_with(&format!("_Run ID: `{RUN}` | Request ID: `fr-1`_\n")), "{comment}");
    assert!(!comment.ends_with("\n\n"));
    let uuid = run(folder.path(), &["generate_run_id", "--uuid-only"]).stdout;
    assert_eq!(uuid.trim_end().len(), 36, "{uuid}");
}

#[test]
fn many_runs_are_answered_in_one_text() {
    let runs = RunFolder::new();
    for (number, work_id) in
        [(1, "258"), (2, "259"), (3, "260"), (4, "260"), (5, "PROJ-12"), (6, "7")]
    {
        runs.add_waiting(number, work_id);
    }
    let answer = |lines: &[&str]| {
        let ran = run(&runs.root, &[&["answer", "--user", "kim"], lines].concat());
        (ran.exit, parse(&ran.stdout), ran.stderr)
    };
    let (exit, reply, said) = answer(&[
        "#258: approve",
        "Run #259: 2",
        "PROJ-12: LGTM",
        "",
        "999: approve",
        "and that is all",
    ]);
    assert_eq!(exit, 0, "a line that names no run is a warning: {reply}");
    let answers: Vec<(&str, &str)> = reply["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["response"].as_str().unwrap(), row["action"].as_str().unwrap()))
        .collect();
    assert_eq!(answers, [("approve", "continue"), ("reject", "abort"), ("approve", "continue")]);
    assert_eq!(reply["warnings"][0]["code"], "NOT_AWAITING_FEEDBACK", "{reply}");
    assert_eq!(reply["warnings"][1]["code"], "INVALID_LINE", "{reply}");
    assert!(said.contains("\"999\"") && said.contains("and that is all"), "{said}");
    let entry = &runs.state(&RunFolder::id(1))["feedback_history"][0];
    assert_eq!(entry["provided_by"], json!({"user": "kim", "source": "parallel_coordination"}));

    let third = format!("{}: reject: too slow", RunFolder::id(3));
    let (exit, reply, said) = answer(&["260: approve", "7: perhaps", &third, "258: reject"]);
    let codes: Vec<&str> = reply["refusals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["code"].as_str().unwrap())
        .collect();
    assert_eq!((exit, &codes[..]), (4, &["SEVERAL_RUNS", "INVALID_RESPONSE"][..]), "{reply}");
    let place = format!("{} (build:review), ", RunFolder::id(3));
    assert!(said.contains(&place), "where each of them asks: {said}");
    let late = &reply["warnings"][0];
    assert_eq!(late["code"], "NOT_AWAITING_FEEDBACK", "{reply}");
    assert!(said.contains(r#""approve" by "kim""#), "who was first, and with what: {said}");
    assert_eq!(late["already_answered"]["response"], "approve", "{reply}");
    let entry = &runs.state(&RunFolder::id(3))["feedback_history"][0];
    assert_eq!((&entry["response"], &entry["comment"]), (&json!("reject"), &json!("too slow")));
    assert_eq!(runs.state(&RunFolder::id(4))["status"], "awaiting_feedback");
    assert_eq!(runs.state(&RunFolder::id(6))["status"], "awaiting_feedback");
}

/// What `jq` and the scripts' own templates print, byte for byte.
#[test]
fn standard_output_is_that_of_the_scripts() {
    let folder = with_run();
    let of_run = ["--run-id", RUN];
    let update = |words: &[&str]| {
        let words = [&["update-feedback-state", "--operation"], words, &of_run].concat();
        let ran = run(folder.path(), &words);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{words:?}");
        ran.stdout
    };
    let asked = ["set-awaiting", "--request-id", "fr-1", "--type", "review", "--prompt", "é \"q\""];
    let point = ["--phase", "build", "--step", "x"];
    let resume_point =
        "  \"resume_point\": {\n    \"phase\": \"build\",\n    \"step\": \"x\"\n  }\n}\n";
    assert_eq!(
        update(&[&asked[..], &point, &["--step-index", "4", "--options", "[\"a\"]"]].concat()),
        format!(
            "{{\n  \"status\": \"success\",\n  \"operation\": \"set-awaiting\",\n  \"request_id\": \"fr-1\",\n{resume_point}"
        )
    );
    assert_eq!(
        update(&[&["clear-awaiting"], &point[..]].concat()),
        format!(
            "{{\n  \"status\": \"success\",\n  \"operation\": \"clear-awaiting\",\n{resume_point}"
        )
    );
    assert_eq!(
        update(&[
            "add-history",
            "--request-id",
            "fr-1",
            "--type",
            "review",
            "--response",
            "é \"q\""
        ]),
        "{\n  \"status\": \"success\",\n  \"operation\": \"add-history\",\n  \"request_id\": \"fr-1\",\n  \"response\": \"é \\\"q\\\"\"\n}\n"
    );
    let words = [&["emit-event", "--type", "checkpoint"], &of_run[..]].concat();
    let emitted = run(folder.path(), &words).stdout;
    let at = parse(&emitted)["timestamp"].as_str().unwrap().to_owned();
    assert_eq!(
        emitted,
        format!(
            "{{\n  \"status\": \"success\",\n  \"operation\": \"emit-event\",\n  \"event_id\": 1,\n  \"type\": \"checkpoint\",\n  \"run_id\": \"{RUN}\",\n  \"timestamp\": \"{at}\",\n  \"event_path\": \".fractary/plugins/faber/runs/{RUN}/events/001-checkpoint.json\"\n}}\n"
        )
    );
    let state = std::fs::read_to_string(
        folder.path().join(".fractary/plugins/faber/runs").join(RUN).join("state.json"),
    )
    .unwrap();
    assert!(
        state.starts_with(&format!("{{\n  \"run_id\": \"{RUN}\",\n  \"work_id\": \"258\",\n")),
        "{state}"
    );
    assert!(state.ends_with("\n}\n"), "{state}");
}
