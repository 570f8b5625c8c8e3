//! A checker's report: verdict, kind, failures, passed.

use sdk::workflow::report::{ReportKind, Verdict, parse};
use serde_json::{Value, json};

use super::Report;

pub(super) fn run(row: &Value, report: &mut Report) {
    let expect = &row["expect"];
    report.known_keys("expect", expect, &["verdict", "kind", "failures", "passed", "note"]);
    let read = parse(row["report"].as_str());
    let mut got = json!({
        "verdict": read.verdict.map(Verdict::word),
        "kind": read.kind.word(),
        "failures": read.failures,
        "passed": read.passed,
    });
    // A note matters where it joins the work order: for defects that name nothing.
    let matters = read.kind == ReportKind::Defects && read.failures.is_empty();
    if expect.get("note").is_some() || (matters && read.note.is_some()) {
        got["note"] = json!(read.note);
    }
    report.compare("expect", expect, &got);
}
