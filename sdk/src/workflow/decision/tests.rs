use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn reads_as(raw: &str, want: Result<Value, DecisionError>) {
    assert_eq!(value(raw), want, "{raw:?}");
}

#[test]
fn the_tolerant_form() {
    for (raw, want) in [
        ("{'a': 1,}", json!({"a": 1})),
        ("{'a': [1, 2,], \"b\": ()}", json!({"a": [1, 2], "b": []})),
        ("{'a': (1,), 'b': (1), 'c': (1, 'x')}", json!({"a": [1], "b": 1, "c": [1, "x"]})),
        (
            "{'a': True, 'b': false, 'c': None, 'd': null}",
            json!({"a": true, "b": false, "c": null, "d": null}),
        ),
        (
            r#"{'a': 'it\'s', 'b': "say \"x\"", 'c': "it's"}"#,
            json!({"a": "it's", "b": "say \"x\"", "c": "it's"}),
        ),
        (
            r"{'a': '\u2014\x41\U0001F600\n\/\q', 'b': '\ud83d\ude00', 'c': '\ud83d'}",
            json!({"a": "—A😀\n/\\q", "b": "😀", "c": "\u{fffd}"}),
        ),
        ("{'a': -1.5e3, 'a': 2}", json!({"a": 2})),
        ("({'a': 1})", json!({"a": 1})),
        ("{'a': 'tab\there'}", json!({"a": "tab\there"})),
        ("{\"a\": \"\\ud800\"}", json!({"a": "\u{fffd}"})),
        ("{\"a\":1},{\"b\":2}", json!([{"a": 1}, {"b": 2}])),
        ("{},", json!([{}])),
    ] {
        reads_as(raw, Ok(want));
    }
}

#[test]
fn what_is_neither_json_nor_literal() {
    for raw in [
        "{'a': 1",
        "{'a' 1}",
        "{'a': 1 'b': 2}",
        "{,}",
        "{'a': ,}",
        "[1,,2]",
        "{a: 1}",
        "{1: 2}",
        "{'a': NaN}",
        "{\"a\": Infinity}",
        "{\"a\": -Infinity}",
        "{\"a\": 1e999}",
        "{'a': 01}",
        "{'a': +1}",
        "{'a': 'line\nbreak'}",
        "{'a': 1} // done",
        "{'a': 1} {'b': 2}",
        "{\"a\": 1}, as you wished",
        "{'a': TRUE}",
        "{'a': \"open}",
        "<tool>{}</tool>",
        "`{}`",
    ] {
        reads_as(raw, Err(DecisionError::NotJson));
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested =
        |depth: usize, end: &str| format!("{}1{end}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(value(&nested(64, "")).is_ok());
    assert!(value(&nested(64, ",")).is_ok());
    for depth in [65, 127, 128, 100_000] {
        reads_as(&nested(depth, ""), Err(DecisionError::NotJson));
        reads_as(&nested(depth, ","), Err(DecisionError::NotJson));
    }
    reads_as(&"(".repeat(100_000), Err(DecisionError::NotJson));
}

#[test]
fn fences() {
    for raw in [
        "```json\n{\"a\":1}\n```",
        "```\n{\"a\":1}\n```\n",
        "  ```JSON\n\n{\"a\":1}\n\n```  ",
        "```json\r\n{\"a\":1}\r\n```",
        "```json\n{\"a\":1}",
        "```json\n{\"a\":1}```",
        "```json {\"a\":1}\n```",
        "```{\"a\":1}```",
        "``` {\"a\":1} ```",
        "````json\n{\"a\":1}\n````",
        "```json title=x\n{\"a\":1}\n```",
        "```json\n{\"a\":1}\n```\nThat is it.\nReally.",
        "```python\n{'a': 1}\n```",
        "\u{feff}```json\n{\"a\":1}\n```",
    ] {
        reads_as(raw, Ok(json!({"a": 1})));
    }
    for raw in [
        "Sure:\n```json\n{\"a\":1}\n```",
        "```json\n{\"a\":1}\n```\nThen run\n```\nls\n```",
        "```json\n```",
        "```",
        "```json\nno\n```",
        "{\"a\":1}\n```",
    ] {
        reads_as(raw, Err(DecisionError::NotJson));
    }
}

#[test]
fn nothing_and_null() {
    for raw in ["", "  \n", "\u{feff}", "\u{feff} \r\n"] {
        reads_as(raw, Err(DecisionError::Empty));
    }
    for raw in ["null", "None", " null\n", "```json\nnull\n```"] {
        reads_as(raw, Err(DecisionError::Null));
    }
    assert_eq!(parse("\u{feff}\u{feff}{}", Driver::Task), Err(DecisionError::NotJson));
    assert_eq!(parse("'text'", Driver::Task), Err(DecisionError::NotObject));
    assert_eq!(parse("()", Driver::Sub), Err(DecisionError::NotObject));
    assert_eq!(parse("True", Driver::Sub), Err(DecisionError::NotObject));
}

#[test]
fn a_task_s_decision() {
    use DecisionError as E;
    for (raw, want) in [
        (json!({}), Err(E::MissingActions)),
        (json!({"reasoning": "x"}), Err(E::MissingActions)),
        (json!({"action_name": "a"}), Err(E::MissingActions)),
        (json!({"action_name": "a", "args": {}}), Err(E::WrongKey("args"))),
        (json!({"message": "m", "response": "r"}), Err(E::WrongKey("response"))),
        (json!({"message": "m", "args": {}, "action": "a"}), Err(E::WrongKey("action"))),
        (json!({"name": "a"}), Err(E::MissingActions)),
        (json!({"response": "r", "actions": []}), Err(E::ActionsEmpty)),
        (json!({"actions": null}), Err(E::ActionsNotList)),
        (json!({"actions": "a"}), Err(E::ActionsNotList)),
        (json!({"actions": ["a", 1, null, []]}), Err(E::ActionsEmpty)),
        (json!({"actions": [{}]}), Err(E::ActionsEmpty)),
        (json!({"actions": [{"action_name": 5}]}), Err(E::ActionsEmpty)),
        (json!({"actions": [{"action_name": null}]}), Err(E::ActionsEmpty)),
        (
            json!({"actions": [{"name": "n", "args": {}, "action": "a"}]}),
            Err(E::ItemWrongKey("action")),
        ),
        (json!({"actions": [{"name": "n", "args": {}}]}), Err(E::ItemWrongKey("args"))),
        (json!({"actions": [{"action_name": "ok"}, {"name": "n"}]}), Err(E::ItemWrongKey("name"))),
        (json!({"actions": [{"action_name": "", "action": "a"}]}), Err(E::ActionsEmpty)),
        (
            json!({"actions": [{"action_name": "a", "name": "n", "action": "b"}]}),
            Ok(vec![("a", json!({}))]),
        ),
        (
            json!({"actions": [{"action_name": "a", "args": 1, "parameters": {"x": 1}}]}),
            Ok(vec![("a", json!({"x": 1}))]),
        ),
        (
            json!({"actions": [{"action_name": "a", "parameters": null}, {"action_name": "b", "parameters": [1]}]}),
            Ok(vec![("a", json!({})), ("b", json!({}))]),
        ),
        (
            json!({"actions": [{"action_name": "a", "parameters": {}}], "message": "m"}),
            Ok(vec![("a", json!({}))]),
        ),
    ] {
        let read = parse(&raw.to_string(), Driver::Task);
        let read = read.map(|list| {
            list.into_iter()
                .map(|d| (d.action_name, Value::Object(d.parameters)))
                .collect::<Vec<_>>()
        });
        let want = want.map(|list| {
            list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        });
        assert_eq!(read, want, "{raw}");
    }
}

#[test]
fn a_sub_agent_s_decision() {
    use DecisionError as E;
    for (raw, want) in [
        (json!({}), Err(E::ActionsNotNonemptyList)),
        (json!({"response": "r"}), Err(E::ActionsNotNonemptyList)),
        (json!({"action": "a"}), Err(E::ActionsNotNonemptyList)),
        (json!({"actions": null}), Err(E::ActionsNotNonemptyList)),
        (json!({"actions": [], "action_name": "a"}), Err(E::ActionsNotNonemptyList)),
        (json!({"actions": [{}]}), Err(E::ItemMissingActionName)),
        (json!({"actions": [{"action_name": "a"}, {}]}), Err(E::ItemMissingActionName)),
        (json!({"actions": [{"action": "a"}]}), Err(E::ItemMissingActionName)),
        (json!({"action_name": "a", "parameters": 3}), Ok(vec!["a"])),
        (
            json!({"actions": [{"action_name": ""}, {"action_name": "b", "args": {}}]}),
            Ok(vec!["", "b"]),
        ),
    ] {
        let read = parse(&raw.to_string(), Driver::Sub);
        let read = read.map(|list| list.into_iter().map(|d| d.action_name).collect::<Vec<_>>());
        assert_eq!(
            read,
            want.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>()),
            "{raw}"
        );
    }
}

#[test]
fn the_reason_goes_to_every_action() {
    let raw = json!({"reasoning": "why", "actions": [{"action_name": "a", "reasoning": "own"}, {"action_name": "b"}]});
    for driver in [Driver::Task, Driver::Sub] {
        let read = parse(&raw.to_string(), driver).unwrap();
        assert!(read.iter().all(|decision| &*decision.reasoning == "why"));
    }
    let raw = json!({"reasoning": 1, "actions": [{"action_name": "a"}]});
    assert_eq!(&*parse(&raw.to_string(), Driver::Task).unwrap()[0].reasoning, "");
}

/// Pieces of what models answer.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "\n",
    "```",
    "```json\n",
    "\"",
    "'",
    "\\",
    "\\u00e9",
    "\\ud83d",
    "\\x4",
    "é",
    "\u{feff}",
    "True",
    "None",
    "1e999",
    "-0",
    "\"actions\":",
    "'actions': ",
    "\"action_name\":",
    "'action_name':",
    "\"a\"",
    "'b'",
    "\"parameters\":",
    "{\"actions\": [{\"action_name\": \"a\"}",
    "]}",
    "\"reasoning\": null",
];

proptest! {
    #[test]
    fn any_text_can_be_read(raw in "(?s)[\\[\\](){}'\",:a1\\\\u \n`T-]{0,60}") {
        let _ = parse(&raw, Driver::Task);
        let _ = parse(&raw, Driver::Sub);
    }

    #[test]
    fn what_is_nearly_a_decision_can_be_read(parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..16)) {
        let raw = parts.concat();
        for driver in [Driver::Task, Driver::Sub] {
            let read = parse(&raw, driver);
            prop_assert!(read.is_err() || raw.contains("action_name"), "{}", raw);
        }
    }

    /// Whatever is JSON reads the same in the tolerant form.
    #[test]
    fn the_tolerant_form_contains_json(text in "(?s).{0,20}", number: i64, flag: bool) {
        let value = json!({"actions": [{"action_name": text, "parameters": {"n": number, "f": flag, "z": null}}], text.clone(): []});
        prop_assert_eq!(literal::parse(&value.to_string()), Some(value));
    }
}
