use std::os::unix::fs::PermissionsExt;

use super::*;

/// A program of the given shell script, in a directory of its own.
struct Program(tempfile::TempDir);

impl Program {
    fn new(script: &str) -> Program {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tracker");
        #[expect(clippy::disallowed_methods, reason = "a program for a test, not state")]
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program(dir)
    }

    fn post(&self, issue: &str, body: &str) -> Result<Posted, PostError> {
        let program = self.0.path().join("tracker").to_str().unwrap().to_owned();
        let poster = CommandPoster { program, limit: Duration::from_secs(20) };
        // A file that was open for writing when another test forked cannot be run for a moment.
        loop {
            match poster.post(issue, body) {
                Err(PostError::Program(why)) if why.contains("busy") => {}
                other => return other,
            }
        }
    }
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let program = Program::new(
        r#"for a in "$@"; do printf '[%s]' "$a" >> "$0.log"; done
           echo '{"status":"success","data":{"id":77,"url":"https://example.com/c/77"}}'"#,
    );
    let body = "line\n\n$HOME `id` \"q\" 'q' \\ ; --json é 🎯";
    let posted = program.post("PROJ-12", body).unwrap();
    assert_eq!(posted, Posted { id: "77".into(), url: "https://example.com/c/77".into() });
    let log = std::fs::read_to_string(program.0.path().join("tracker.log")).unwrap();
    assert_eq!(log, format!("[work][comment][create][PROJ-12][--body][{body}][--json]"));
}

#[test]
fn what_goes_wrong_is_said() {
    let word = r#"echo '{"status":"error","error":{"code":"AUTH_FAILED","message":"log in"}}'"#;
    for (script, want) in [
        (format!("{word}; exit 1"), "AUTH_FAILED: log in"),
        (format!("{word} >&2; exit 1"), "AUTH_FAILED: log in"),
        (word.to_owned(), "AUTH_FAILED: log in"),
        ("echo broken pipe dream >&2; exit 4".to_owned(), "broken pipe dream"),
        ("exit 4".to_owned(), "no output"),
        ("echo done".to_owned(), "does not answer"),
        (r#"echo '{"status":"success","data":{"id":"1"}}'"#.to_owned(), "does not answer"),
        (
            r#"echo '{"status":"success","data":{"id":"1","url":null}}'"#.to_owned(),
            "does not answer",
        ),
        (r#"echo '{"status":"queued","data":{"id":"1","url":"u"}}'"#.to_owned(), "does not answer"),
        (r#"echo '{"status":"success","data":{"id":"1","url":"u"}}'; exit 1"#.to_owned(), "failed"),
    ] {
        let error = Program::new(&script).post("258", "b").unwrap_err().to_string();
        assert!(error.contains(want), "{script}: {error}");
    }
}

#[test]
fn an_issue_id_is_never_a_flag() {
    let program = Program::new(r#"touch "$0.ran""#);
    for issue in ["", "-1", "--help"] {
        assert_eq!(program.post(issue, "b"), Err(PostError::Issue { issue: issue.into() }));
    }
    assert!(!program.0.path().join("tracker.ran").exists());
}

#[test]
fn a_tracker_that_hangs_is_given_up() {
    let program = Program::new("sleep 60");
    let path = program.0.path().join("tracker").to_str().unwrap().to_owned();
    let poster = CommandPoster { program: path, limit: Duration::from_millis(200) };
    let error = poster.post("258", "b").unwrap_err().to_string();
    assert!(error.contains("killed") || error.contains("busy"), "{error}");
}

#[test]
fn a_body_beyond_what_a_program_can_take_is_refused() {
    let program = Program::new("exit 0");
    let error = program.post("258", &"x".repeat(4 << 20)).unwrap_err();
    assert!(matches!(error, PostError::Program(_)), "{error}");
    let error = program.post("258", "a\0b").unwrap_err();
    assert!(matches!(error, PostError::Program(_)), "{error}");
}
