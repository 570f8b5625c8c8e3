use proptest::prelude::*;

use super::*;

fn declared(columns: &[(&str, &str)]) -> Vec<Declared> {
    columns
        .iter()
        .map(|(name, letter)| Declared::new(*name, Some(Kind::of_letter(letter))))
        .collect()
}

fn show(table: &Table) -> String {
    let mut out = String::new();
    for column in table.columns() {
        out.push_str(&format!("{}:{:?} ", column.name, column.kind));
    }
    for row in 0..table.len() {
        let cells = (0..table.columns().len())
            .map(|column| match table.value(row, column) {
                Value::Null => "-".to_owned(),
                Value::Text(text) => format!("<{text}>"),
                Value::Integer(n) => n.to_string(),
                Value::Double(n) => format!("{n:?}"),
                Value::Boolean(b) => b.to_string(),
                Value::Json(text) => format!("j{text}"),
            })
            .collect::<Vec<_>>();
        out.push_str(&format!("| {} ", cells.join(" ")));
    }
    out.trim_end().to_owned()
}

#[track_caller]
fn check(columns: &[(&str, &str)], body: Body, want: &str) {
    assert_eq!(show(&Table::new(&declared(columns), body).expect("small")), want);
}

fn value(text: &str) -> Body {
    Body::Value(text.to_owned())
}

#[test]
fn the_result_of_an_operation_becomes_a_table() {
    check(&[], value(r#"[{"a": 1}, {"b": "x"}]"#), "a:Integer b:Text | 1 - | - <x>");
    check(
        &[],
        value(r#"{"ok": false, "error": "not found"}"#),
        "ok:Boolean error:Text | false <not found>",
    );
    check(
        &[],
        value(r#"["plain", {"a": [1,  2]}, 42, null]"#),
        r#"value:Json | j"plain" | j{"a":[1,2]} | j42 | -"#,
    );
    check(&[], value("true"), "value:Boolean | true");
    check(&[("value", "b")], value("false"), "value:Boolean | false");
    check(&[], value("null"), "value:Text");
    check(&[("id", "s"), ("n", "i")], value("null"), "id:Text n:Integer");
    check(&[("id", "s")], value("[]"), "id:Text");
    check(&[], value("{}"), "value:Text | -");
    check(
        &[],
        Body::Records(vec![r#"{"a":1}"#.to_owned(), r#"{"a":2}"#.to_owned()]),
        "a:Integer | 1 | 2",
    );
}

#[test]
fn types() {
    check(&[], value(r#"[{"x": 1}, {"x": 2.5}, {"x": null}]"#), "x:Double | 1.0 | 2.5 | -");
    check(&[], value(r#"[{"x": 9007199254740993}]"#), "x:Integer | 9007199254740993");
    check(&[], value(r#"[{"x": 9223372036854775808}]"#), "x:Json | j9223372036854775808");
    check(&[], value(r#"[{"x": 1}, {"x": "1"}]"#), r#"x:Json | j1 | j"1""#);
    check(&[], value(r#"[{"x": null}]"#), "x:Text | -");
    check(&[("x", "f")], value(r#"[{"x": 1}]"#), "x:Double | 1.0");
    check(
        &[("x", "f")],
        value(r#"[{"x": NaN}, {"x": -Infinity}, {"x": 1e400}]"#),
        "x:Double | - | - | -",
    );
    check(&[("x", "s")], value(r#"[{"x": "a"}, {"x": 5}]"#), r#"x:Json | j"a" | j5"#);
    check(&[("x", "j")], value(r#"[{"x": "a"}]"#), r#"x:Json | j"a""#);
    check(&[("x", "i")], value(r#"[{"x": 1.0}]"#), "x:Json | j1.0");
    check(
        &[],
        value(r#"[{"x": [NaN, -Infinity, -1, Infinity]}]"#),
        "x:Json | j[null,null,-1,null]",
    );
}

#[test]
fn names() {
    check(
        &[("taskId", "s")],
        value(r#"[{"TaskID": 1, "taskId": "t"}]"#),
        "taskId:Text TaskID_1:Integer | <t> 1",
    );
    check(
        &[],
        value(r#"[{"a": 1, "A": 2, "a_1": 3}]"#),
        "a:Integer A_1:Integer a_1_1:Integer | 1 2 3",
    );
    check(&[], value(r#"[{"a": 1, "a": 2}, {"a": 3, "a": null}]"#), "a:Integer | 2 | -");
    check(&[], value(r#"[{"é": 1}, {"\u00e9": 2}]"#), "é:Integer | 1 | 2");
    check(&[], value(r#"[{"": 1}]"#), "_:Integer | 1");
    check(
        &[],
        value(r#"[{"b": 1, "a": 2}, {"a": 3}, {"a": 5, "b": 4}, {"c": 1}]"#),
        "b:Integer a:Integer c:Integer | 1 2 - | - 3 - | 4 5 - | - - 1",
    );
}

#[test]
fn many_columns_are_told_apart() {
    // All of one name but for the case of its letters.
    let key = |n: usize| -> String {
        let cased = |at: usize| if n >> at & 1 == 1 { 'A' } else { 'a' };
        (0..15).map(cased).collect()
    };
    let fields = (0..1 << 15).map(|n| format!("\"{}\":{n}", key(n))).collect::<Vec<_>>();
    let table = Table::new(&[], value(&format!("[{{{}}}]", fields.join(",")))).expect("small");
    let names = table.columns().iter().map(|column| column.name.as_str());
    let wanted = (0..1 << 15).map(|n| if n == 0 { key(0) } else { format!("{}_{n}", key(n)) });
    assert!(names.eq(wanted));
}

#[test]
fn an_index_finds_what_a_scan_finds() {
    let table =
        Table::new(&[], value(r#"[{"a": "x"}, {"a": "\u0078"}, {"a": ""}, {"b": 1}, {"a": "y"}]"#))
            .expect("small");
    let index = table.index(0).expect("text");
    assert_eq!(index.candidates("x"), [0, 1]);
    assert_eq!(index.candidates(""), [2]);
    assert_eq!(index.candidates("z"), [0_u32; 0]);
    assert!(table.index(1).is_none());
}

#[test]
fn compact_keeps_texts_and_numbers() {
    for (text, want) in [
        (r#"{"a": [1.50,  "b c" ]}"#, r#"{"a":[1.50,"b c"]}"#),
        ("[ ]", "[]"),
        ("-5", "-5"),
        ("[-5, -Infinity]", "[-5,null]"),
        (r#""\" x""#, r#""\" x""#),
        ("1e-07", "1e-07"),
    ] {
        assert_eq!(compact(text), want);
    }
}

/// A list of records, as other programs may write it.
fn records() -> impl Strategy<Value = Vec<serde_json::Value>> {
    let cell = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-3..3_i64).prop_map(Into::into),
        (-3.0..3.0_f64).prop_map(Into::into),
        "[a\"\\\\é{}\\[\\]:, ]{0,4}".prop_map(Into::into),
    ];
    let cell = cell.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
            proptest::collection::vec(("[a\"é]", inner), 0..3)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    });
    let fields = proptest::collection::vec(("[b\"\\\\é]{1,2}", cell), 0..4);
    let record = fields.prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect()));
    proptest::collection::vec(record, 1..5)
}

proptest! {
    #[test]
    fn each_cell_is_the_member_of_its_record(records in records(), pretty in any::<bool>()) {
        let list = serde_json::Value::Array(records.clone());
        let text = if pretty { format!("{list:#}") } else { list.to_string() };
        let table = Table::new(&[], value(&text)).expect("small");
        prop_assert_eq!(table.len(), records.len());
        for (row, record) in records.iter().enumerate() {
            for (at, column) in table.columns().iter().enumerate() {
                let member = record.get(&column.name).filter(|member| !member.is_null());
                let cell = table.cell(row, at).filter(|cell| *cell != "null");
                let read = cell.map(|cell| serde_json::from_str::<serde_json::Value>(cell).expect("JSON"));
                prop_assert_eq!(read.as_ref(), member);
            }
            let members = record.as_object().expect("made as one");
            let named = |name: &str| table.columns().iter().any(|column| column.name == name);
            prop_assert!(members.keys().all(|key| named(key)));
        }
    }
}
