use super::*;

const APPROVAL: &str = r#"["approve","reject"]"#;
const REVIEW: &str = r#"["approve","request_changes","reject"]"#;

/// `[response, match or reason, comment]` of a reply that ends in the trigger.
#[track_caller]
fn check(said: &str, kind: &str, options: &str, want: [&str; 3]) {
    let reply = parse_reply(&format!("{said}\n\n@faber resume"), kind, options, "").unwrap();
    let how = reply.matched.or(reply.reason).unwrap_or("");
    assert_eq!(
        [reply.response.as_deref().unwrap_or(""), how, &reply.comment],
        want,
        "{said:?} {options}"
    );
    assert_eq!(reply.trigger, Some("resume"));
    assert_eq!(reply.matched.is_some(), reply.response.is_some());
}

#[test]
fn a_whole_text_is_an_option_or_its_number() {
    check("approve", "approval", APPROVAL, ["approve", "exact", ""]);
    check("**Approve!**", "approval", APPROVAL, ["approve", "exact", ""]);
    check("`REJECT`.", "approval", APPROVAL, ["reject", "exact", ""]);
    check("request-changes", "review", REVIEW, ["request_changes", "exact", ""]);
    check("_Request  changes_", "review", REVIEW, ["request_changes", "exact", ""]);
    for text in ["2", "#2", "2.", "2)", "**2**"] {
        check(text, "approval", APPROVAL, ["reject", "index", ""]);
    }
    for text in ["0", "3", "#3", "-1", "2x", "# 2", "99999999999999999999999"] {
        check(text, "approval", APPROVAL, ["", "no_option", text]);
    }
    check("2", "selection", r#"["2","1"]"#, ["2", "exact", ""]);
    check("a b", "selection", r#"["a-b","a_b"]"#, ["", "ambiguous", "a b"]);
    check("a_b", "selection", r#"["a-b","a_b"]"#, ["a_b", "exact", ""]);
}

#[test]
fn an_answer_may_lead_a_comment() {
    check(
        "Approve\nnice work\n\n\nthanks",
        "approval",
        APPROVAL,
        ["approve", "lead", "nice work\n\nthanks"],
    );
    check(
        "reject: too big\nsplit it",
        "approval",
        APPROVAL,
        ["reject", "lead", "too big\nsplit it"],
    );
    check("request changes: a: b", "review", REVIEW, ["request_changes", "lead", "a: b"]);
    check("note: approve", "approval", APPROVAL, ["approve", "word", "note: approve"]);
    check("a: b: c", "selection", r#"["a: b","x"]"#, ["a: b", "lead", "c"]);
}

#[test]
fn free_text_comes_after_options() {
    check("Use tabs.\n\nAlways.", "clarification", "[]", ["Use tabs.\n\nAlways.", "free_text", ""]);
    check("tabs", "clarification", r#"["tabs"]"#, ["tabs", "exact", ""]);
    check("yes", "clarification", r#"["approve"]"#, ["yes", "free_text", ""]);
    check("if it must be", "clarification", "", ["if it must be", "free_text", ""]);
}

#[test]
fn synonyms_stand_for_offered_options_only() {
    check("LGTM!", "approval", APPROVAL, ["approve", "alias", ""]);
    check("Looks good to me\nmerge it", "approval", APPROVAL, ["approve", "alias", "merge it"]);
    check("no", "approval", APPROVAL, ["reject", "alias", ""]);
    check("No.", "confirmation", r#"["confirm","cancel"]"#, ["cancel", "alias", ""]);
    check("stop", "error_resolution", "", ["abort", "alias", ""]);
    check("please revise", "review", REVIEW, ["request_changes", "alias", ""]);
    check("please revise", "approval", APPROVAL, ["", "no_option", "please revise"]);
    check("yes", "selection", r#"["approve","confirm"]"#, ["", "ambiguous", "yes"]);
}

#[test]
fn words_count_unless_negated_or_conditional() {
    for (said, want) in [
        ("I approve this design. The approach looks good.", "approve"),
        ("I can't approve this; reject it.", "reject"),
        ("I won’t reject it. Approve", "approve"),
        ("We did not talk about that much but fine", "no_option"),
        ("I do not approve", "no_option"),
        ("not that I would ever really approve", "approve"),
        ("never ever approve", "no_option"),
        ("Not yet. I approve", "approve"),
        ("I approve if the tests pass", "conditional"),
        ("Approve, but rename it", "conditional"),
        ("Approve if green. I approve anyway", "approve"),
        ("Once done I approve. Approve after review", "conditional"),
        ("approve or reject?", "ambiguous"),
        ("approve, or reject if red", "ambiguous"),
        ("disapprove", "no_option"),
        ("approved by me, thanks", "no_option"),
        ("Interesting", "no_option"),
    ] {
        let found = ["approve", "reject"].contains(&want);
        check(
            said,
            "approval",
            APPROVAL,
            if found { [want, "word", said] } else { ["", want, said] },
        );
    }
}

#[test]
fn a_longer_option_swallows_its_part() {
    let options = r#"["approve","approve with changes"]"#;
    let said = "I approve with changes here";
    check(said, "selection", options, ["approve with changes", "word", said]);
    check("I approve this", "selection", options, ["approve", "word", "I approve this"]);
    let said = "take approve after review please";
    check(
        said,
        "selection",
        r#"["approve after review","reject"]"#,
        ["approve after review", "word", said],
    );
    let said = "Let us take flat files here";
    check(said, "selection", r#"["postgres","flat files"]"#, ["flat files", "word", said]);
    let said = "Files that are flat";
    check(said, "selection", r#"["postgres","flat files"]"#, ["", "no_option", said]);
}

#[test]
fn quotes_code_and_comments_say_nothing() {
    check("> reject\n\napprove", "approval", APPROVAL, ["approve", "exact", ""]);
    check("```\nreject\n```\napprove", "approval", APPROVAL, ["approve", "exact", ""]);
    check("<!-- reject -->approve", "approval", APPROVAL, ["approve", "exact", ""]);
    check("> approve", "approval", APPROVAL, ["", "empty", ""]);
}

#[test]
fn an_empty_reply_takes_the_comment_before() {
    let parse = |previous: &str| {
        let reply =
            parse_reply("@faber resume --request fr-1", "approval", APPROVAL, previous).unwrap();
        (reply.response, reply.reason, reply.request)
    };
    let request = Some("fr-1".to_owned());
    assert_eq!(parse("approve\r\n"), (Some("approve".into()), None, request.clone()));
    assert_eq!(parse("reject\n@faber resume"), (Some("reject".into()), None, request.clone()));
    for previous in ["", "> approve", " \n", "approve\n_Run ID: `a` | Request ID: `b`_"] {
        assert_eq!(parse(previous), (None, Some("empty"), request.clone()), "{previous:?}");
    }
}

#[test]
fn our_own_comment_never_answers() {
    for (body, want) in [
        ("approve\n@faber resume\n_Run ID: `a` | Request ID: `b`_", Some("own_comment")),
        ("_Run ID: `a` | Request ID: `b`_\r\n@faber resume", Some("own_comment")),
        ("approve\n> _Run ID: `a` | Request ID: `b`_\n@faber resume", None),
        ("approve", Some("no_trigger")),
        ("", Some("no_trigger")),
    ] {
        assert_eq!(parse_reply(body, "approval", APPROVAL, "").unwrap().reason, want, "{body:?}");
    }
}

#[test]
fn other_commands_carry_no_answer() {
    let reply =
        parse_reply("approve\n@faber cancel --run x", "approval", APPROVAL, "reject").unwrap();
    let want = Reply { trigger: Some("cancel"), run: Some("x".into()), ..Reply::default() };
    assert_eq!(reply, want);
}

#[test]
fn options_default_to_those_of_the_type() {
    check("skip", "error_resolution", "", ["skip", "exact", ""]);
    assert_eq!(parse_reply("", "approval", "{}", "").unwrap_err().code, Code::InvalidOptions);
}

/// Whoever may write a comment may write a long one: reading it must not take longer than it is.
#[test]
fn the_longest_comments_are_read_like_any() {
    let long = |part: &str| part.repeat((1 << 17) / part.len());
    let options: Vec<String> = (0..500).map(|n| format!("option number {n}")).collect();
    let many = serde_json::to_string(&options).unwrap();
    for (body, options, want) in [
        (format!("{}@faber resume", long("approve ")), "", Some("approve")),
        (format!("{}approve\n@faber resume", long("<!-- -->")), "", Some("approve")),
        (format!("approve\n{}@faber resume", long("`a` @ ")), "", Some("approve")),
        (format!("{}\n@faber resume", long("a:")), "", None),
        (format!("{}\n@faber resume", long("not approve ")), "", None),
        (format!("{}\n@faber resume", long("option number ")), &many, None),
        (
            format!("{}option number 7\n@faber resume", long("number ")),
            &many,
            Some("option number 7"),
        ),
        (long("@faber resume --run x "), "", None),
    ] {
        let reply = parse_reply(&body, "approval", options, "").unwrap();
        assert_eq!(
            (reply.trigger, reply.response.as_deref()),
            (Some("resume"), want),
            "{}",
            &body[..20]
        );
    }
}

/// Whoever asks may offer options as long, and as many.
#[test]
fn the_longest_options_are_read_like_any() {
    let long = |part: &str| part.repeat((1 << 20) / part.len());
    let list = |options: &[String]| serde_json::to_string(options).unwrap();
    let one = list(&[long("a: "), "b".to_owned()]);
    let words = list(&[long("a "), "b c".to_owned()]);
    let many = list(&(0..100_000).map(|n| format!("option {n}")).collect::<Vec<_>>());
    for (said, options, want) in [
        (long("a: "), &one, Some(long("a: "))),
        (long("a:"), &one, None),
        ("b: why".to_owned(), &one, Some("b".to_owned())),
        (format!("if {}", long("a ")), &words, None),
        (format!("{} b c", long("not a. ")), &words, Some("b c".to_owned())),
        (long("option "), &many, None),
        (format!("option 77: {}", long("option ")), &many, Some("option 77".to_owned())),
    ] {
        let reply = parse_reply(&format!("{said}\n@faber resume"), "selection", options, "");
        let options = parse_options(options);
        let found =
            reply.unwrap().response.map(|response| options.iter().position(|it| *it == response));
        let want = want.map(|want| options.iter().position(|it| it.trim() == want.trim()));
        assert_eq!(found, want, "{}", said.chars().take(20).collect::<String>());
    }
}

fn parse_options(options: &str) -> Vec<String> {
    serde_json::from_str(options).unwrap()
}
