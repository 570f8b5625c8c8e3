use super::*;

fn form(effect: &str, payload: &str) -> Form {
    Form::of_card(effect, Some(Json::trusted(payload)))
}

/// `action|text|params`, each may be empty for "not given".
#[track_caller]
fn check(form: &Form, given: &str, want: Result<&str, &str>) {
    let mut parts = given.splitn(3, '|').map(|part| Some(part).filter(|part| !part.is_empty()));
    let mut next = || parts.next().flatten();
    let answer = form.check(&Given { action: next(), text: next(), params: next() });
    match (answer, want) {
        (Ok(answer), Ok(want)) => assert_eq!(answer.to_json(), want, "{given}"),
        (Err(said), Err(want)) => assert!(said.contains(want), "{given}: {said}"),
        (answer, want) => panic!("{given}: {answer:?}, wanted {want:?}"),
    }
}

#[test]
fn a_reply_is_a_text_or_parameters() {
    let form = form("reply", r#"{"widget": {"type": "text"}}"#);
    for (given, want) in [
        ("|EMEA|", Ok(r#"{"action":"reply","text":"EMEA"}"#)),
        ("reply|EMEA|", Ok(r#"{"action":"reply","text":"EMEA"}"#)),
        ("Reply| two\nlines |", Ok(r#"{"action":"reply","text":" two\nlines "}"#)),
        (
            r#"||{"n": 12345678901234567890123, "s": "\ud800"}"#,
            Ok(r#"{"action":"reply","params":{"n": 12345678901234567890123, "s": "\ud800"}}"#),
        ),
        (r#"|a|{}"#, Ok(r#"{"action":"reply","text":"a","params":{}}"#)),
        ("||", Err("the answer is empty")),
        ("|  \n|", Err("the answer is empty")),
        ("reply||", Err("the answer is empty")),
        ("approve|a|", Err("there is no action `approve` here: use `reply`")),
        ("|a|{", Err("`--params` is not JSON")),
        ("|a|[1]", Err("`--params` must be a JSON object")),
        ("|a|NaN", Err("`--params` is not JSON")),
    ] {
        check(&form, given, want);
    }
}

#[test]
fn a_decision_is_one_of_its_actions() {
    let gate = form("approval_gate", "{}");
    for (given, want) in [
        ("approve||", Ok(r#"{"action":"approve"}"#)),
        ("Reject|too risky|", Ok(r#"{"action":"reject","text":"too risky"}"#)),
        ("|approve|", Ok(r#"{"action":"approve"}"#)),
        ("|2|", Ok(r#"{"action":"reject"}"#)),
        ("||", Err("say what you decide with `--action`: `approve`, `reject`")),
        ("|fine by me|", Err("say what you decide")),
        ("reply|x|", Err("there is no action `reply` here: use `approve`, `reject`")),
        ("3||", Err("there is no action `3`")),
        ("0||", Err("there is no action `0`")),
    ] {
        check(&gate, given, want);
    }
    let review = form("review_work_product", r#"{"effectArgs": {"workProductId": "wp_1"}}"#);
    for (given, want) in [
        ("accept||", Ok(r#"{"action":"accept"}"#)),
        ("request changes|shorter|", Ok(r#"{"action":"request_changes","text":"shorter"}"#)),
        ("request-changes||", Ok(r#"{"action":"request_changes"}"#)),
        ("approve||", Err("use `accept`, `request_changes`")),
    ] {
        check(&review, given, want);
    }
}

#[test]
fn options_of_the_widget_bind_a_reply() {
    let widget = r#"{"widget": {"options": ["EMEA", {"value": "apac", "label": "Asia"}, 3, {"x": 1}, null, " "]}}"#;
    let form = form("reply", widget);
    assert_eq!(form.options.len(), 3, "what names nothing is passed over");
    for (given, want) in [
        ("|EMEA|", Ok(r#"{"action":"reply","text":"EMEA"}"#)),
        ("| emea |", Ok(r#"{"action":"reply","text":"EMEA"}"#)),
        ("|Asia|", Ok(r#"{"action":"reply","text":"apac"}"#)),
        ("|1|", Ok(r#"{"action":"reply","text":"EMEA"}"#)),
        ("|3|", Ok(r#"{"action":"reply","text":"3"}"#)),
        ("asia||", Ok(r#"{"action":"reply","text":"apac"}"#)),
        ("asia|and more|", Err("`apac` is the whole answer")),
        ("|elsewhere|", Err("`elsewhere` is not among the options: `EMEA`, `apac`, `3`")),
        ("||", Err("choose one of the options: `EMEA`, `apac`, `3`")),
        ("||{}", Err("choose one of the options")),
    ] {
        check(&form, given, want);
    }
}

#[test]
fn options_of_the_widget_replace_the_usual_decisions() {
    let gate =
        form("approval_gate", r#"{"widget": {"props": {"choices": ["once", "always", "never"]}}}"#);
    check(&gate, "always||", Ok(r#"{"action":"always"}"#));
    check(&gate, "approve||", Err("use `once`, `always`, `never`"));
    let own = form(
        "reply",
        r#"{"widget": {"actions": [{"action": "retry", "label": "Try again"}, "skip"]}}"#,
    );
    check(&own, "try again|soon|", Ok(r#"{"action":"retry","text":"soon"}"#));
    check(&own, "|skip|", Ok(r#"{"action":"skip"}"#));
    check(&own, "|hm|", Err("say what you decide"));
    let foreign = form("other_effect", "{}");
    check(&foreign, "|a|", Ok(r#"{"action":"reply","text":"a"}"#));
    check(&foreign, "whatever||", Ok(r#"{"action":"whatever"}"#));
}

#[test]
fn fields_of_the_widget_bind_the_parameters() {
    let fields = r#"{"widget": {"type": "form", "fields": [
        {"name": "ä", "required": true}, {"name": "size", "options": ["S", 2]}, {"id": "many", "options": ["a", "b"]}, {}]}}"#;
    let form = form("reply", fields);
    for (given, want) in [
        (r#"||{"ä": 1}"#, Ok(r#"{"action":"reply","params":{"ä": 1}}"#)),
        (
            r#"||{"ä": 1, "size": 2, "many": ["b", "a"]}"#,
            Ok(r#"{"action":"reply","params":{"ä": 1, "size": 2, "many": ["b", "a"]}}"#),
        ),
        (r#"||{"size": "S"}"#, Err("the field `ä` is required")),
        (r#"||{"ä": ""}"#, Err("the field `ä` is required")),
        (r#"||{"ä": 1, "size": "XL"}"#, Err(r#"`size` cannot be "XL": `S`, `2`"#)),
        (r#"||{"ä": 1, "many": ["a", "c"]}"#, Err(r#"`many` cannot be "c""#)),
        (r#"||{"ä": 1, "b": 2}"#, Err("there is no field `b`, only `ä`, `size`, `many`")),
        ("|just text|", Err("the field `ä` is required: give it in `--params`")),
    ] {
        check(&form, given, want);
    }
}

#[test]
fn payloads_of_any_shape_are_taken() {
    for payload in [
        "null",
        "7",
        "[]",
        r#"{"widget": 7}"#,
        r#"{"widget": {"options": {}}}"#,
        r#"{"widget": {"options": []}}"#,
    ] {
        check(&form("reply", payload), "|a|", Ok(r#"{"action":"reply","text":"a"}"#));
    }
    check(&Form::of_card("approval_gate", None), "approve||", Ok(r#"{"action":"approve"}"#));
}

#[test]
fn ten_thousand_options_are_named_in_a_readable_message() {
    let options: Vec<String> = (0..10_000).map(|n| format!("\"option {n}\"")).collect();
    let form = form("reply", &format!("{{\"widget\": {{\"options\": [{}]}}}}", options.join(",")));
    check(&form, "|option 9999|", Ok(r#"{"action":"reply","text":"option 9999"}"#));
    let said = form.check(&Given { text: Some("none"), ..Given::default() }).unwrap_err();
    assert!(said.len() < 600 && said.ends_with("and 9980 more"), "{said}");
}
