use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn overrides(body: &str) -> Vec<(String, String)> {
    UdfRequest::parse(body.as_bytes()).unwrap().overrides
}

#[test]
fn parameters_become_the_text_operations_take() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    for (sent, want) in [
        (r#""plain""#, Some("plain")),
        (r#""""#, Some("")),
        (r#""a\nb\u00e9\ud83d\ude00""#, Some("a\nbé😀")),
        ("true", Some("true")),
        ("1.50", Some("1.50")),
        ("123456789012345678901234567890", Some("123456789012345678901234567890")),
        ("null", None),
        (r#"{"a":"\ud800", "n":1e-7}"#, Some(r#"{"a":"\ud800", "n":1e-7}"#)),
        ("[1, 2]", Some("[1, 2]")),
        (&deep, Some(deep.as_str())),
        (r#""half \ud83d""#, Some("half \u{fffd}")),
    ] {
        let body = format!(r#"{{"udf":"op","overrides":{{"p":{sent}}}}}"#);
        let want: Vec<_> = want.map(|text| ("p".to_owned(), text.to_owned())).into_iter().collect();
        assert_eq!(overrides(&body), want, "{}", shortened(sent));
    }
}

#[test]
fn overrides_may_be_left_out_and_other_members_are_ignored() {
    for body in [
        r#"{"udf":"op"}"#,
        r#"{"udf":"op","overrides":{}}"#,
        r#"{"udf":"op","overrides":null}"#,
        r#" {"sources":[],"udf":"op","cache_max_age":"0s"} "#,
    ] {
        assert_eq!(
            UdfRequest::parse(body.as_bytes()).unwrap(),
            UdfRequest { udf: "op".into(), overrides: vec![] }
        );
    }
}

#[test]
fn a_bad_body_is_refused_in_words() {
    for (body, fragment) in [
        (&b""[..], "empty"),
        (b" \n", "empty"),
        (b"{}", "`udf` is missing"),
        (b"[]", "object, not a list"),
        (b"\"x\"", "object, not text"),
        (b"null", "object, not null"),
        (b"{", "not JSON"),
        (b"{\"udf\":\"a\"} x", "not JSON"),
        (b"\xef\xbb\xbf{\"udf\":\"a\"}", "not JSON"),
        (b"{\"udf\":\"\xff\"}", "not UTF-8 from byte 8"),
        (b"{\"udf\":1}", "`udf` must be text, not a number"),
        (b"{\"udf\":null}", "`udf` must be text, not null"),
        (b"{\"udf\":\"\"}", "`udf` is empty"),
        (b"{\"udf\":\"a\",\"udf\":\"b\"}", "key `udf` twice"),
        (b"{\"udf\":\"a\",\"u\\u0064f\":\"b\"}", "key `udf` twice"),
        (b"{\"udf\":\"a\",\"overrides\":[]}", "`overrides` must be an object, not a list"),
        (b"{\"udf\":\"a\",\"overrides\":\"x\"}", "`overrides` must be an object, not text"),
        (
            b"{\"udf\":\"a\",\"overrides\":{\"k\":1,\"k\":null}}",
            "`overrides` has the key `k` twice",
        ),
        (b"{\"udf\":\"a\",\"overrides\":{\"k\":NaN}}", "not JSON"),
    ] {
        let error = UdfRequest::parse(body).unwrap_err().to_string();
        assert!(error.contains(fragment), "{}: {error}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_name_is_completed_by_the_address() {
    let cases = [
        ("op", Some("w"), Some("p"), Some(("w", "p", "op"))),
        ("q.op", Some("w"), Some("p"), Some(("w", "q", "op"))),
        ("q.op", Some("w"), None, Some(("w", "q", "op"))),
        ("v.q.op", Some("w"), Some("p"), Some(("v", "q", "op"))),
        ("v.q.op", None, None, Some(("v", "q", "op"))),
        ("op", Some("w"), None, None),
        ("op", None, Some("p"), None),
        ("op", Some(""), Some("p"), None),
        ("a.b.c.d", Some("w"), Some("p"), None),
        (".op", Some("w"), Some("p"), None),
        ("v..op", Some("w"), Some("p"), None),
        ("op.", Some("w"), Some("p"), None),
    ];
    for (udf, workspace, project, want) in cases {
        assert_eq!(
            qualify(udf, workspace, project).ok(),
            want,
            "{udf} at {workspace:?} {project:?}"
        );
    }
}

#[test]
fn number_tokens_that_json_lacks_leave_as_null() {
    for (reply, want) in [
        ("NaN", "null"),
        ("[NaN,-Infinity,Infinity, NaN]", "[null,null,null, null]"),
        (r#"{"NaN":"-Infinity","a":NaN}"#, r#"{"NaN":"-Infinity","a":null}"#),
        (r#"{"a":"\"NaN","b":-1}"#, r#"{"a":"\"NaN","b":-1}"#),
        (r#"{"a\\":Infinity,"N":"I"}"#, r#"{"a\\":null,"N":"I"}"#),
    ] {
        let body = render_reply(&Reply::Value(reply.to_owned()), REPLY_LIMIT).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), format!(r#"{{"data":{want},"error":null}}"#));
    }
}

#[test]
fn a_reply_over_the_limit_is_an_error_that_says_so() {
    let records = Reply::Records(vec!["1".repeat(40), "2".repeat(40)]);
    assert!(render_reply(&records, 83).is_ok());
    let error = render_reply(&records, 82).unwrap_err().to_string();
    assert!(error.contains("83 bytes") && error.contains("limit of 82"), "{error}");
}

#[test]
fn an_error_message_is_quoted() {
    let body = render_error("say \"no\"\n\u{1}");
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({"data": null, "error": "say \"no\"\n\u{1}"})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[NaI\"\\\\a-z é😀]{0,12}".prop_map(Value::from),
        Just(json!("NaN")),
        Just(json!("-Infinity")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map("[NaI\"a]{0,4}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Pieces of request bodies.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u00e9",
    "\\ud83d",
    "é",
    " ",
    "null",
    "1e999",
    "-0",
    "\"udf\":",
    "\"udf\": \"a.b\"",
    "{\"udf\": \"a\", \"overrides\": {",
    "\"k\": ",
    "\"k\": \"v\"",
    "}}",
    "\"overrides\":",
    "\"u\\u0064f\":",
    "\"..\"",
];

proptest! {
    #[test]
    fn a_reply_stands_in_the_envelope_as_it_came(data in any_json()) {
        let body = render_reply(&Reply::Value(data.to_string()), REPLY_LIMIT).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), json!({"data": data, "error": null}));
    }

    #[test]
    fn structured_parameters_survive_as_text(value in any_json()) {
        let body = json!({"udf": "op", "overrides": {"p": value}}).to_string();
        let read = UdfRequest::parse(body.as_bytes()).unwrap().overrides;
        let want = match &value {
            Value::Null => vec![],
            Value::String(text) => vec![("p".to_owned(), text.clone())],
            other => vec![("p".to_owned(), other.to_string())],
        };
        prop_assert_eq!(read, want);
    }

    #[test]
    fn no_body_makes_the_parser_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _either = UdfRequest::parse(&body);
    }

    #[test]
    fn what_is_nearly_a_request_is_read_or_refused(
        parts in proptest::collection::vec(proptest::sample::select(PARTS.to_vec()), 0..14),
    ) {
        let body = parts.concat();
        if let Ok(request) = UdfRequest::parse(body.as_bytes()) {
            prop_assert!(!request.udf.is_empty() && body.contains("udf"));
            let _either = qualify(&request.udf, Some("w"), Some("p"));
        }
    }
}
