use proptest::prelude::*;

use super::*;
use crate::json::Object;

fn record(id: &str, stamp: &str) -> Record {
    Record::parse(&Object::new().set("id", id).set("createdAt", stamp).to_string()).unwrap()
}

fn field(record: &Record, name: &str) -> String {
    record.str(name).unwrap_or_default().into_owned()
}

fn page<'a>(limit: u32, after: &'a str) -> Page<'a> {
    Page { limit, after, fields: "*,cursor" }
}

fn rows(reply: Result<Rows<'_>, UdfError>) -> Vec<Record> {
    reply.unwrap().reply().unwrap().as_records().unwrap().to_vec()
}

fn ids(reply: Result<Rows<'_>, UdfError>) -> String {
    rows(reply).iter().map(|row| field(row, "id")).collect::<Vec<_>>().join(" ")
}

fn sample() -> Vec<Record> {
    let odd = [r#"{"id":"none"}"#, r#"{"id":"number","createdAt":7}"#, "7", r#"["x"]"#];
    let mut list = vec![record("b", "2"), record("a", "1"), record("c", "2"), record("d", "10")];
    list.extend(odd.map(|text| Record::parse(text).unwrap()));
    list
}

#[test]
fn order_is_stable_and_odd_stamps_are_empty() {
    assert_eq!(ids(Page::default().oldest_first(sample())), "none number a d b c");
    assert_eq!(ids(Page::default().newest_first(sample())), "b c d a none number");
    assert_eq!(rows(Page::default().in_order(sample())).len(), 8);
}

#[test]
fn a_page_begins_behind_an_id_or_a_cursor() {
    assert_eq!(ids(page(2, "").oldest_first(sample())), "none number");
    assert_eq!(ids(page(2, "number").oldest_first(sample())), "a d");
    assert_eq!(ids(page(0, "c").newest_first(sample())), "d a none number");
    assert_eq!(ids(page(0, "c").oldest_first(sample())), "");
    let error = page(0, "it's").oldest_first(sample()).unwrap_err();
    assert_eq!(
        error.message(),
        "`after` is no place in this list: \"it's\"; leave it out to start from the beginning"
    );
    assert_eq!(rows(page(0, "6").in_order(sample())).len(), 2);
    assert_eq!(ids(page(0, "9").in_order(sample())), "");
    assert!(page(0, "x").in_order(sample()).is_err());
}

#[test]
fn fields_are_chosen_and_keep_their_order() {
    let list = vec![Record::parse(r#"{"a":1,"id":"x","b":{"c":[1.50]},"n":null}"#).unwrap()];
    for (fields, want) in [
        ("", r#"{"a":1,"id":"x","b":{"c":[1.50]},"n":null}"#),
        (" b , a,,", r#"{"a":1,"b":{"c":[1.50]}}"#),
        ("n,b,zz,a,n,id,b", r#"{"a":1,"id":"x","b":{"c":[1.50]},"n":null}"#),
        ("missing", "{}"),
        ("*,a", r#"{"a":1,"id":"x","b":{"c":[1.50]},"n":null}"#),
        ("n,cursor", r#"{"n":null,"cursor":"c1-0--227822"}"#),
    ] {
        let rows = rows(Page { fields, ..Page::default() }.oldest_first(list.clone()));
        assert_eq!(rows, [Record::parse(want).unwrap()], "{fields}");
    }
    // No name in UTF-8 is half of a pair of surrogates.
    let odd = [Record::parse(r#"{"\ud800":1,"\u0061":2}"#).unwrap()];
    let chosen = rows(Page { fields: "a,\u{fffd}", ..Page::default() }.oldest_first(odd.to_vec()));
    assert_eq!(chosen, [Record::parse(r#"{"a":2}"#).unwrap()]);
    let entries = [Record::parse("7").unwrap(), Record::parse(r#"{"a":1,"b":2}"#).unwrap()];
    let chosen = rows(Page { fields: "b,cursor", ..Page::default() }.in_order(entries.to_vec()));
    assert_eq!(chosen, [entries[0].clone(), Record::parse(r#"{"b":2,"cursor":"2"}"#).unwrap()]);
}

#[test]
fn a_cursor_outlives_its_record() {
    let list = vec![record("a", "1"), record("b", "1"), record("c", "1"), record("d", "2")];
    let cursor = field(&rows(page(2, "").oldest_first(list.clone()))[1], CURSOR);
    for (gone, want) in [("b", "c d"), ("a", "c d"), ("c", "d"), ("d", "c")] {
        let mut left = list.clone();
        left.retain(|row| !row.is("id", gone));
        assert_eq!(ids(page(0, &cursor).oldest_first(left)), want, "without {gone}");
    }
}

proptest! {
    /// Walking page by page gives each record once, in order, although others are added on the way.
    #[test]
    fn pages_put_together_are_the_list(
        stamps in proptest::collection::vec("[0-3]", 0..12),
        added in proptest::collection::vec("[0-3]", 0..6),
        limit in 1_u32..4,
        same_id in any::<bool>(),
        newest in any::<bool>(),
    ) {
        let name = |at: usize| if same_id { "x".to_owned() } else { format!("r{at}") };
        let mut list: Vec<Record> =
            stamps.iter().enumerate().map(|(at, stamp)| record(&name(at), stamp)).collect();
        let original = list.clone();
        let listed = |list: Vec<Record>, limit: u32, after: &str| {
            let page = page(limit, after);
            rows(if newest { page.newest_first(list) } else { page.oldest_first(list) })
        };
        let mut added = added.into_iter();
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let part = listed(list.clone(), limit, &after);
            let Some(last) = part.last() else { break };
            after = field(last, CURSOR);
            seen.extend(part);
            if let Some(stamp) = added.next() {
                list.push(record(&format!("new{}", list.len()), &stamp));
            }
        }
        seen.retain(|row| !field(row, "id").starts_with("new"));
        let stamp = |row: &Record| (field(row, "id"), field(row, "createdAt"));
        let want: Vec<_> = listed(original, 0, "").iter().map(stamp).collect();
        prop_assert_eq!(seen.iter().map(stamp).collect::<Vec<_>>(), want);
    }

    /// Walking page by page, with a number of records going after each page, misses none that stays.
    #[test]
    fn what_stays_is_seen_whatever_goes(
        stamps in proptest::collection::vec("[0-1]", 0..60),
        gone in proptest::collection::vec(proptest::collection::vec(any::<proptest::sample::Index>(), 0..30), 0..60),
        limit in 1_u32..24,
        newest in any::<bool>(),
    ) {
        let mut list: Vec<Record> =
            stamps.iter().enumerate().map(|(at, stamp)| record(&format!("r{at}"), stamp)).collect();
        let listed = |list: Vec<Record>, after: &str| {
            let page = page(limit, after);
            rows(if newest { page.newest_first(list) } else { page.oldest_first(list) })
        };
        let mut gone = gone.into_iter();
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let part = listed(list.clone(), &after);
            let Some(last) = part.last() else { break };
            after = field(last, CURSOR);
            seen.extend(part.iter().map(|row| field(row, "id")));
            for index in gone.next().unwrap_or_default() {
                if !list.is_empty() {
                    list.remove(index.index(list.len()));
                }
            }
        }
        for row in list {
            prop_assert!(seen.contains(&field(&row, "id")));
        }
    }

    #[test]
    fn any_text_is_a_cursor_or_not(text in "(c1-)?[0-9]{0,21}-?(([0-7][0-9a-f])|[c-f89+é][0-9a-f]?){0,5}-?([0-7][0-9a-f]){0,5}(-[0-9a-f]{0,9})?.{0,1}") {
        let _ = Cursor::parse(&text);
    }
}

#[test]
fn a_page_goes_on_when_all_that_was_shown_is_gone() {
    for count in [6, 60] {
        let mut list: Vec<Record> = (0..count).map(|at| record(&format!("r{at}"), "1")).collect();
        let (mut seen, mut after) = (0, String::new());
        loop {
            let part = rows(page(count / 3, &after).oldest_first(list.clone()));
            let Some(last) = part.last() else { break };
            after = field(last, CURSOR);
            seen += part.len();
            list.retain(|row| part.iter().all(|shown| field(shown, "id") != field(row, "id")));
        }
        assert_eq!((seen, list.len()), (count as usize, 0));
    }
}

#[test]
fn a_record_that_was_shown_is_not_shown_again_for_those_that_went_beside_it() {
    let list: Vec<Record> = (0..40).map(|at| record(&format!("r{at}"), "1")).collect();
    let shown = rows(page(30, "").oldest_first(list.clone()));
    let cursor = field(&shown[29], CURSOR);
    assert_eq!(Cursor::parse(&cursor).unwrap().to_string(), cursor);
    let left = |gone: std::ops::Range<usize>| {
        let left = list.iter().enumerate().filter(|(at, _)| !gone.contains(at));
        let left = left.map(|(_, row)| row.clone()).collect();
        field(&rows(page(1, &cursor).oldest_first(left))[0], "id")
    };
    assert_eq!(left(14..30), "r30");
    // Further back than a cursor remembers: some are shown once more.
    assert_eq!(left(13..30), "r0");
}
