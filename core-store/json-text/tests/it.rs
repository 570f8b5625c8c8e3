//! The byte format: tables of the app-store contract §4, and properties against `serde_json`.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop a test as its own code does")]

use json_text::{
    FieldPattern, Json, Kind, Layout, MAX_DEPTH, Specials, check, field_spans, quote, render,
    render_list, string_eq,
};
use proptest::prelude::*;
use serde_json::Value;

fn shown(text: &str, layout: Layout) -> Result<String, String> {
    let mut out = String::new();
    render(text, layout, Specials::Accept, &mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

fn line(text: &str) -> String {
    shown(text, Layout::Line).unwrap()
}

fn pretty(text: &str) -> String {
    shown(text, Layout::Pretty { level: 0 }).unwrap()
}

#[test]
fn values_have_one_form() {
    for (text, want) in [
        (" [ ] ", "[]"),
        ("{\n}", "{}"),
        ("-0", "0"),
        ("0", "0"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1E5", "100000.0"),
        ("1.50", "1.5"),
        ("-0.0", "-0.0"),
        ("-0e7", "-0.0"),
        ("1e16", "1e+16"),
        ("123456789012345.5e1", "1234567890123455.0"),
        ("0.00015", "0.00015"),
        ("0.000015", "1.5e-05"),
        ("1e23", "1e+23"),
        ("5e-324", "5e-324"),
        ("1e-400", "0.0"),
        ("1e400", "1e400"),
        ("NaN", "NaN"),
        ("[Infinity,-Infinity]", "[Infinity, -Infinity]"),
        (r#""\/\u0041\u00e9\u007f""#, "\"/Aé\u{7f}\""),
        (r#""\u0000\u001F\b\f\n\r\t\"\\""#, r#""\u0000\u001f\b\f\n\r\t\"\\""#),
        (r#""\ud83d\ude00 \uD83D\uDE00""#, "\"😀 😀\""),
        (r#""\uD83D""#, r#""\ud83d""#),
        (r#""\uDE00\uD83D""#, r#""\ude00\ud83d""#),
        (r#""\ud83d\ud83d\ude00""#, "\"\\ud83d😀\""),
        (r#""\ud83dx\ude00""#, r#""\ud83dx\ude00""#),
        (r#"{"a":1,"b":2,"a":{"c":3,"c":4}}"#, r#"{"a": {"c": 4}, "b": 2}"#),
        (r#"{"é":1,"\u00e9":2}"#, r#"{"é": 2}"#),
        (r#"{"":[],"":[[]]}"#, r#"{"": [[]]}"#),
        ("[true,false,null]", "[true, false, null]"),
    ] {
        assert_eq!(line(text), want, "{text}");
        assert_eq!(line(&pretty(text)), want, "{text}");
    }
}

#[test]
fn layouts() {
    let text = r#"{"a":[1,{"b":[]}],"c":"x"}"#;
    assert_eq!(
        pretty(text),
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": \"x\"\n}"
    );
    assert_eq!(
        shown(text, Layout::Pretty { level: 1 }).unwrap(),
        "{\n    \"a\": [\n      1,\n      {\n        \"b\": []\n      }\n    ],\n    \"c\": \"x\"\n  }"
    );
    assert_eq!(line(text), r#"{"a": [1, {"b": []}], "c": "x"}"#);
    assert_eq!(shown(text, Layout::Compact).unwrap(), text);
    // Indentation beyond what is kept ready.
    let deep = "[".repeat(60) + "1" + &"]".repeat(60);
    assert!(pretty(&deep).contains(&format!("\n{}1\n", " ".repeat(120))));
}

#[test]
fn faults_are_named_with_their_place() {
    for (text, want) in [
        ("", "expected a value, found the end at line 1 column 1"),
        ("[1,\n 2", "expected `,` or `]`, found the end at line 2 column 3"),
        ("[1 2]", "expected `,` or `]`, found '2' at line 1 column 4"),
        ("[1,]", "expected a value, found ']' at line 1 column 4"),
        ("{\"a\" 1}", "expected `:`, found '1' at line 1 column 6"),
        ("{\"a\":1,}", "expected a key, found '}' at line 1 column 8"),
        ("{a:1}", "expected a key or `}`, found 'a' at line 1 column 2"),
        ("{\"é\": x}", "expected a value, found 'x' at line 1 column 7"),
        ("[]\n[]", "expected the end of the text, found '[' at line 2 column 1"),
        ("01", "number with a leading zero at line 1 column 2"),
        ("1.", "expected a digit, found the end at line 1 column 3"),
        ("-", "expected a digit, found the end at line 1 column 2"),
        ("1e+", "expected a digit, found the end at line 1 column 4"),
        ("tru", "expected a value, found 't' at line 1 column 1"),
        ("\"a\nb\"", "raw control character U+000A in a string at line 1 column 3"),
        ("\"abc", "string without an end at line 1 column 1"),
        (r#""\x""#, "unknown escape in a string at line 1 column 2"),
        (r#""\u12g4""#, "`\\u` without four hex digits at line 1 column 2"),
        ("\u{feff}[]", "unexpected byte order mark at line 1 column 1"),
        ("[\u{a0}]", "expected a value, found '\\u{a0}' at line 1 column 2"),
    ] {
        assert_eq!(shown(text, Layout::Line).unwrap_err(), want, "{text:?}");
        assert_eq!(check(text, Specials::Accept).unwrap_err().to_string(), want, "{text:?}");
    }
    let mut out = "kept".to_owned();
    assert!(render("[1,", Layout::Line, Specials::Accept, &mut out).is_err());
    assert_eq!(out, "kept");
}

#[test]
fn special_numbers_can_be_refused() {
    for text in ["NaN", "[Infinity]", "{\"a\": -Infinity}", "1e999", "-1E400"] {
        assert!(check(text, Specials::Accept).is_ok(), "{text}");
        assert!(check(text, Specials::Refuse).is_err(), "{text}");
    }
    let large = format!("{}.0", "9".repeat(400));
    assert!(check(&large, Specials::Refuse).is_err());
    assert!(check(&"9".repeat(400), Specials::Refuse).is_ok());
    assert!(check("1e308", Specials::Refuse).is_ok());
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(check(&nested(MAX_DEPTH), Specials::Refuse).is_ok());
    let error = check(&nested(1_000_000), Specials::Refuse).unwrap_err();
    assert_eq!(error.reason(), "nested deeper than 1024 levels");
    assert_eq!((error.offset(), error.line(), error.column()), (1024, 1, 1025));
    let objects = "{\"a\":".repeat(MAX_DEPTH) + "1" + &"}".repeat(MAX_DEPTH);
    assert_eq!(line(&objects).len(), objects.len() + MAX_DEPTH);
    let inside = Layout::Pretty { level: 1 };
    assert!(shown(&nested(MAX_DEPTH), inside).is_err());
    assert!(shown(&nested(MAX_DEPTH - 1), inside).is_ok());
    // Looking into one does not recurse either.
    assert_eq!(Json::trusted(&nested(MAX_DEPTH)).items().count(), 1);
}

#[test]
fn a_text_does_not_grow_out_of_proportion() {
    let deep = |levels: usize| {
        format!("{}{}1{}", "[".repeat(levels), "1,".repeat(100_000), "]".repeat(levels))
    };
    let mut out = String::from("before");
    let layout = Layout::Pretty { level: 1 };
    let error = render(&deep(900), layout, Specials::Refuse, &mut out).unwrap_err();
    assert_eq!(error.reason(), "with its indentation it takes more than 22 MiB");
    assert_eq!(out, "before");
    assert!(out.capacity() < 64 << 20, "{}", out.capacity());
    // A file holds many records, and may have been written in one line.
    assert!(render_list(&deep(900), Specials::Refuse, &mut out, &mut Vec::new()).is_ok());
    assert!(shown(&deep(30), layout).is_ok());
    assert!(shown(&deep(900), Layout::Line).is_ok());
}

#[test]
fn members_of_a_list_are_found() {
    let (mut out, mut items) = (String::new(), Vec::new());
    let text = r#"[1,{"a":1,"a":[2]},[],"x"]"#;
    render_list(text, Specials::Refuse, &mut out, &mut items).unwrap();
    let members: Vec<&str> = items.iter().map(|range| &out[range.clone()]).collect();
    assert_eq!(members, ["1", "{\n    \"a\": [\n      2\n    ]\n  }", "[]", "\"x\""]);
    for text in ["{\"a\": [1, 2]}", "3", "[]"] {
        items.clear();
        render_list(text, Specials::Refuse, &mut out, &mut items).unwrap();
        assert!(items.is_empty(), "{text}");
    }
    assert!(render_list("[1, 2", Specials::Refuse, &mut out, &mut items).is_err());
    assert!(items.is_empty());
}

#[test]
fn looking_into_texts() {
    let text = r#" {"a" : 1, "s":"x\"\u00e9", "n": null, "o": {"a": [1, "}", {"b": false}]}, "\u0061": 2.5, "l": "\ud800"} "#;
    let json = Json::parse(text, Specials::Refuse).unwrap();
    assert!(json.is_object());
    assert_eq!(json.get("a").unwrap().text(), "2.5");
    assert_eq!(json.get("s").unwrap().as_str().as_deref(), Some("x\"é"));
    assert!(json.get("s").unwrap().eq_str("x\"é") && !json.get("s").unwrap().eq_str("x\""));
    assert!(json.get("n").unwrap().is_null() && json.get("none").is_none());
    let inner = json.get("o").unwrap().get("a").unwrap();
    assert_eq!(inner.items().map(Json::text).collect::<Vec<_>>(), ["1", "\"}\"", "{\"b\": false}"]);
    assert_eq!(inner.items().nth(2).unwrap().get("b").unwrap().as_bool(), Some(false));
    let keys: Vec<_> = json.fields().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "s", "n", "o", "a", "l"]);
    let lone = json.get("l").unwrap();
    assert_eq!((lone.as_str().as_deref(), lone.as_str_exact()), (Some("\u{FFFD}"), None));
    assert!(!lone.eq_str("\u{FFFD}"));
    let spans = field_spans(text);
    assert_eq!(
        (&text[spans[1].key.clone()], &text[spans[1].value.clone()]),
        ("\"s\"", r#""x\"\u00e9""#)
    );
    assert!(field_spans("[1]").is_empty() && field_spans("").is_empty());
    for (text, kind, integer, float) in [
        ("12", Kind::Number, Some(12), Some(12.0)),
        ("-3", Kind::Number, Some(-3), Some(-3.0)),
        ("1.0", Kind::Number, None, Some(1.0)),
        ("9223372036854775808", Kind::Number, None, Some(9_223_372_036_854_775_808.0)),
        ("Infinity", Kind::Number, None, Some(f64::INFINITY)),
        ("\"1\"", Kind::String, None, None),
        ("true", Kind::Bool, None, None),
        ("null", Kind::Null, None, None),
    ] {
        let json = Json::trusted(text);
        assert_eq!((json.kind(), json.as_i64(), json.as_f64()), (kind, integer, float), "{text}");
    }
    for (text, falsy) in [
        ("null", true),
        ("false", true),
        ("0", true),
        ("-0.0", true),
        ("0e5", true),
        ("\"\"", true),
        ("[ ]", true),
        ("{\n}", true),
        ("true", false),
        ("1e-300", false),
        ("NaN", false),
        ("\" \"", false),
        ("[0]", false),
    ] {
        assert_eq!(Json::trusted(text).is_falsy(), falsy, "{text}");
    }
}

/// Any JSON value, as a text in which strings are escaped and blanks are strewn at random.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a\u{0}\u{1f}\"\\\\/\u{7f}\u{2028}😀]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner.clone()), 0..30)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            prop::collection::vec(("[abc]", inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn strewn(value: &Value, seed: u64, out: &mut String) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let blank = |n: usize, out: &mut String| out.push_str(["", "", " ", "\n\t", "\r\n  "][n % 5]);
    blank(next(), out);
    match value {
        Value::String(text) => strewn_string(text, next(), out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                strewn(item, next() as u64, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (key, item)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                blank(next(), out);
                strewn_string(key, next(), out);
                blank(next(), out);
                out.push(':');
                strewn(item, next() as u64, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
    blank(next(), out);
}

fn strewn_string(text: &str, seed: usize, out: &mut String) {
    out.push('"');
    for (i, c) in text.chars().enumerate() {
        if c < ' ' || c == '"' || c == '\\' || (i + seed).is_multiple_of(5) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        } else {
            out.push(c);
        }
    }
    out.push('"');
}

fn same(a: Json<'_>, b: &Value) -> bool {
    match b {
        Value::Null => a.is_null(),
        Value::Bool(b) => a.as_bool() == Some(*b),
        Value::Number(b) => a.text().parse::<f64>().ok() == b.as_f64(),
        Value::String(b) => a.eq_str(b) && a.as_str().as_deref() == Some(b),
        Value::Array(b) => {
            a.kind() == Kind::Array
                && a.items().count() == b.len()
                && a.items().zip(b).all(|(a, b)| same(a, b))
        }
        Value::Object(b) => {
            a.is_object()
                && a.fields().count() == b.len()
                && a.fields().zip(b).all(|((key, a), (want, b))| key == *want && same(a, b))
        }
    }
}

proptest! {
    #[test]
    fn rendering_keeps_the_value_and_is_final(value in value(), seed in any::<u64>()) {
        let mut text = String::new();
        strewn(&value, seed, &mut text);
        for layout in [Layout::Pretty { level: 0 }, Layout::Line, Layout::Compact] {
            let shown = shown(&text, layout).unwrap();
            prop_assert!(same(Json::trusted(&shown), &value), "{}", shown);
            let read: Value = serde_json::from_str(&shown).unwrap();
            prop_assert!(same(Json::trusted(&text), &read));
            let mut again = String::new();
            render(&shown, layout, Specials::Refuse, &mut again).unwrap();
            prop_assert_eq!(again, shown);
        }
    }

    #[test]
    fn what_serde_json_takes_and_refuses_is_taken_and_refused(text in "[\\[\\]{}:,\"a\\\\u0-9.eE+\\- \n\u{1}tnrulfase]{0,12}") {
        prop_assert!(is_judged_alike(&text), "{:?}", text);
    }

    #[test]
    fn what_is_nearly_json_is_taken_and_refused_alike(
        value in value(),
        at in any::<prop::sample::Index>(),
        kept in any::<prop::sample::Index>(),
        put in "[\\[\\]{}:,\"\\\\u0-9.eE+\\- \n\u{1}é]{0,2}",
    ) {
        let text = value.to_string();
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end)).collect::<Vec<_>>();
        let (a, b) = (at.get(&ends), kept.get(&ends));
        let (start, end) = (a.min(b), a.max(b));
        // Something in the place of a stretch, of all that follows, or of nothing.
        for end in [*end, text.len(), *start] {
            let text = format!("{}{put}{}", &text[..*start], &text[end..]);
            prop_assert!(is_judged_alike(&text), "{:?}", text);
        }
    }

    #[test]
    fn quoted_strings_read_back(text in any::<String>(), other in any::<String>()) {
        let mut quoted = String::new();
        quote(&text, &mut quoted);
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text.as_str());
        prop_assert!(string_eq(&quoted, &text));
        prop_assert_eq!(string_eq(&quoted, &other), text == other);
    }

    #[test]
    fn looking_never_panics(text in any::<String>(), pieces in "[\\[\\]{}:,\"a\\\\u0-9dD ßஅ😀]{0,40}") {
        for text in [&text, &pieces, &format!("\"{text}\""), &format!("\"{pieces}\"")] {
            look(text);
        }
    }
}

/// Whether a text is JSON here if it is to serde_json.
fn is_judged_alike(text: &str) -> bool {
    let ours = check(text, Specials::Refuse).is_ok();
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    // It does not bound numbers that it keeps as text.
    let beyond = check(text, Specials::Accept).is_ok() && !ours;
    ours == theirs || beyond
}

/// Looks at a text that nobody checked in each way there is.
fn look(text: &str) {
    let json = Json::trusted(text);
    drop((json.get("a"), json.as_str(), json.as_str_exact(), json.as_i64(), json.as_f64()));
    drop((json.is_falsy(), json.eq_str("a"), string_eq(text, "aß"), field_spans(text)));
    assert!(json.items().count() + json.fields().count() <= text.len());
    assert!(Json::leading(text).text().len() <= text.len());
    assert!(FieldPattern::new("a").find(text).is_none_or(|found| found.text().len() < text.len()));
}

#[test]
fn an_escape_of_any_character_is_passed_over_whole() {
    for text in ["\"\\அ\"", "\"\\ß\"", "\"a\\😀b\"", "[\"\\ß\"]", "{\"\\ß\":\"\\ß\"}", "\"\\"]
    {
        look(text);
    }
    assert_eq!(Json::trusted("\"a\\ßb\"").as_str().as_deref(), Some("aßb"));
}
