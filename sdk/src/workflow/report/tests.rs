use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(
    report: &str,
    kind: ReportKind,
    verdict: Option<Verdict>,
    failures: &[&str],
    passed: &[&str],
) {
    let read = parse(Some(report));
    assert_eq!((read.kind, read.verdict), (kind, verdict), "{report:?}");
    assert_eq!(read.failures, failures, "{report:?}");
    assert_eq!(read.passed, passed, "{report:?}");
}

const PASS: Option<Verdict> = Some(Verdict::Pass);
const FAIL: Option<Verdict> = Some(Verdict::Fail);
const BLOCKED: Option<Verdict> = Some(Verdict::Blocked);

#[test]
fn verdict_tokens() {
    for report in [
        "VERDICT: PASS",
        "VERDICT : PASS",
        "**VERDICT**: **PASS**",
        "`VERDICT:` `pass`",
        "__Verdict__\t:\n\n  __PASS__",
        "Overall verdict: Pass.",
        "VERDICT: PASSED",
        "VERDICT: VERDICT: PASS",
        "VERDICT:PASS and then prose",
        "VERDICT: PASS / all of it",
        "VERDICT: PASS or so I think; nothing FAILED",
        "VERDICT: PASS orFAIL",
        "VERDICT: PASS/",
        "VERDICT: PASS o",
        "VERDICT: PASS 🎉or",
    ] {
        check(report, ReportKind::Pass, PASS, &[], &[]);
    }
    for report in [
        "VERDICT PASS",
        "VERDICT\n: PASS",
        "VERDICTS: PASS",
        "VERDICT: <PASS|FAIL>",
        "VERDICT: PASS|FAIL",
        "**VERDICT: PASS** | FAIL | BLOCKED",
        "VERDICT: PASSED | FAILED",
        "VERDICT: PASS/FAIL/BLOCKED",
        "Verdict: **PASS** / **FAIL**",
        "VERDICT: pass or fail",
        "VERDICT: PASSED or INCOMPLETE",
        "VERDICT: unclear",
    ] {
        check(report, ReportKind::Blocked, None, &[], &[]);
    }
}

#[test]
fn the_harshest_verdict_wins() {
    check("VERDICT: PASS\nVERDICT: BLOCKED", ReportKind::Blocked, BLOCKED, &[], &[]);
    check("VERDICT: BLOCKED\nVERDICT: FAIL", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: PARTIAL\nVERDICT: PASS", ReportKind::Defects, FAIL, &[], &[]);
    // An echoed template beside a real verdict does not count.
    check("VERDICT: PASS | FAIL | BLOCKED\nVERDICT: PASS", ReportKind::Pass, PASS, &[], &[]);
    check("VERDICT: FAIL | PASS\nVERDICT: PASS", ReportKind::Pass, PASS, &[], &[]);
    // Only a pass can be copied by mistake and do harm.
    check("VERDICT: FAIL/BLOCKED", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: FAILED | see below", ReportKind::Defects, FAIL, &[], &[]);
    // A verdict below the explanations still counts.
    check("VERDICT: PASS\nFAILURES:\n- none\nVERDICT: FAIL", ReportKind::Defects, FAIL, &[], &[]);
}

#[test]
fn the_section_ends_at_the_explanations() {
    check("VERDICT: PASS\n  failures:\n- A — FAIL", ReportKind::Pass, PASS, &[], &[]);
    check("VERDICT: PASS\nBlocked by\n- A — FAIL", ReportKind::Pass, PASS, &[], &[]);
    check(
        "VERDICT: PASS\nThe FAILURES follow\n- A — FAIL",
        ReportKind::Defects,
        FAIL,
        &["- A — FAIL"],
        &[],
    );
    check("VERDICT: FAIL\nFAILURES:\n- A — NOT REACHED", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: FAIL\nsome were not reached", ReportKind::Incomplete, FAIL, &[], &[]);
}

#[test]
fn declared_lines() {
    check("VERDICT: FAIL\n   - A — FAIL", ReportKind::Defects, FAIL, &["- A — FAIL"], &[]);
    check("VERDICT: FAIL\n    - A — FAIL", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: FAIL\n-A — FAIL\n1. B — FAIL\nC — FAIL", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: FAIL\n•\tA:FAILS now ", ReportKind::Defects, FAIL, &["•\tA:FAILS now"], &[]);
    check("VERDICT: FAIL\n- A — FAILURE\n- B — FAILING", ReportKind::Defects, FAIL, &[], &[]);
    check(
        "VERDICT: FAIL\n- A — _FAIL_ — dead",
        ReportKind::Defects,
        FAIL,
        &["- A — _FAIL_ — dead"],
        &[],
    );
    check("VERDICT: FAIL\n- A — FAIL_FAST", ReportKind::Defects, FAIL, &[], &[]);
    let glued = "- A — **FAIL**ed at once";
    check(&format!("VERDICT: PASS\n{glued}"), ReportKind::Defects, FAIL, &[glued], &[]);
    check(
        "VERDICT: FAIL\n- A — PASS — but B: FAIL",
        ReportKind::Defects,
        FAIL,
        &["- A — PASS — but B: FAIL"],
        &[],
    );
    check(
        "VERDICT: FAIL\n- Log-in form - PASSED\n- Login: PASSWORD field — PASSES\n- **C** — **PASS**",
        ReportKind::Defects,
        FAIL,
        &[],
        &["Log-in form", "Login: PASSWORD field", "**C**"],
    );
    check("VERDICT: FAIL\n- PASS: all\n- — PASS", ReportKind::Defects, FAIL, &[], &[]);
    check("VERDICT: FAIL\n- —PASS — PASS", ReportKind::Defects, FAIL, &[], &["—PASS"]);
    check("VERDICT: FAIL\n- A — pass", ReportKind::Defects, FAIL, &[], &[]);
    let (long, longer) = ("n".repeat(120), "n".repeat(121));
    let report = format!("VERDICT: FAIL\n- {long} — PASS\n- {longer} — PASS");
    check(&report, ReportKind::Defects, FAIL, &[], &[&long]);
    check(
        "VERDICT: FAIL\n- Verdicts page — FAIL",
        ReportKind::Defects,
        FAIL,
        &["- Verdicts page — FAIL"],
        &[],
    );
    check("- The Verdict so far — PASS\nVERDICT: FAIL", ReportKind::Defects, FAIL, &[], &[]);
}

#[test]
fn tool_trouble_is_no_defect() {
    check("VERDICT: PASS\n- A — FAIL — browser tool gone", ReportKind::Blocked, BLOCKED, &[], &[]);
    check(
        "VERDICT: FAIL\n- A — PASS\n- B — NOT REACHED\nthe Browser Tool died",
        ReportKind::Blocked,
        BLOCKED,
        &[],
        &[],
    );
    check(
        "VERDICT: FAIL\n- A — FAIL — dead\nBLOCKED BY: Could Not Launch a browser",
        ReportKind::Defects,
        FAIL,
        &["- A — FAIL — dead"],
        &[],
    );
    check(
        "VERDICT: BLOCKED\n- A — FAIL — dead\nbrowser mcp",
        ReportKind::Blocked,
        BLOCKED,
        &[],
        &[],
    );
    check(
        "VERDICT: BLOCKED\n- A — PASS\n- B — FAIL",
        ReportKind::Defects,
        FAIL,
        &["- B — FAIL"],
        &["A"],
    );
    check("VERDICT: BLOCKED\n- A — PASS", ReportKind::Blocked, BLOCKED, &[], &[]);
    let other = parse_with(
        Some("VERDICT: FAIL\n- A — FAIL — search index offline"),
        &["search index offline"],
    );
    assert_eq!(other.kind, ReportKind::Blocked);
}

#[test]
fn notes() {
    for (report, note) in [
        ("VERDICT: FAIL", None),
        ("VERDICT: FAIL —  ", None),
        ("VERDICT: FAIL because", None),
        ("VERDICT: FAIL — export dead ", Some("export dead")),
        ("VERDICT: FAIL: export\nmore", Some("export")),
        ("**VERDICT: FAIL** - export", Some("export")),
        ("VERDICT: FAILED – export", Some("export")),
        ("VERDICT:\nFAIL — export", Some("export")),
        ("VERDICT: PASS | FAIL\nVERDICT: FAIL — export", Some("export")),
        ("VERDICT: FAIL — first\nVERDICT: FAIL — second", Some("first")),
    ] {
        assert_eq!(parse(Some(report)).note.as_deref(), note, "{report:?}");
    }
    let long = format!("VERDICT: FAIL — {}", "§".repeat(400));
    assert_eq!(parse(Some(&long)).note, Some("§".repeat(300)));
    assert_eq!(parse(Some("VERDICT: FAIL — x\n[INFRA:LLM_UNAVAILABLE]")).note, None);
}

#[test]
fn line_ends_do_not_matter() {
    check(
        "VERDICT: FAIL\r- A — FAIL\r\n- B — PASS",
        ReportKind::Defects,
        FAIL,
        &["- A — FAIL"],
        &["B"],
    );
}

/// Pieces from which contradictory and ordinary reports alike are put together.
/// A checker is a model: its report is as long and as odd as it likes, and is read in one go all the same.
#[test]
fn a_report_of_any_size_is_read_at_once() {
    let passes = "VERDICT: PASS ".repeat(300_000);
    assert_eq!(parse(Some(&passes)).kind, ReportKind::Pass);
    let dashes = format!("VERDICT: FAIL\n- {}", "a - ".repeat(500_000));
    assert_eq!(parse(Some(&dashes)).kind, ReportKind::Defects);
    let lines: String = (0..200_000).map(|n| format!("- f{n} — PASS\n")).collect();
    let report = parse(Some(&format!("VERDICT: FAIL\n{lines}- x — NOT REACHED")));
    assert_eq!((report.kind, report.passed.len()), (ReportKind::Incomplete, 200_000));
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "VERDICT: PASS",
        "**Verdict:** pass",
        "VERDICT: FAIL",
        "VERDICT: BLOCKED",
        "VERDICT: INCOMPLETE",
        "VERDICT: PASS | FAIL",
        "- A — PASS — ok",
        "- B — FAIL — dead",
        "* C: **FAILED**",
        "- D — NOT REACHED",
        "FEATURES:",
        "prose about nothing",
        "browser tool",
        "[INFRA:LLM_UNAVAILABLE]",
    ])
}

proptest! {
    #[test]
    fn a_contradictory_report_never_passes(pieces in prop::collection::vec(piece(), 0..8)) {
        let report = pieces.join("\n");
        let read = parse(Some(&report));
        let contradicts = pieces.iter().any(|p| {
            ["VERDICT: FAIL", "VERDICT: BLOCKED", "VERDICT: INCOMPLETE", "- B", "* C", "- D", "[INFRA"]
                .iter().any(|bad| p.starts_with(bad))
        });
        let praises = pieces.contains(&"VERDICT: PASS") || pieces.contains(&"**Verdict:** pass");
        prop_assert_eq!(read.kind == ReportKind::Pass, praises && !contradicts, "{:?}", report);
        prop_assert_eq!(read.verdict == Some(Verdict::Pass), read.kind == ReportKind::Pass);
    }

    #[test]
    fn any_text_can_be_read(report in "(?s)(VERDICT|verdict|PASS|fail|BLOCKED|NOT REACHED|- |—|:|\\*|\\||or | |é|\n|\r|FAILURES|.){0,40}") {
        let read = parse(Some(&report));
        prop_assert!(read.failures.is_empty() || read.kind == ReportKind::Defects);
    }
}
