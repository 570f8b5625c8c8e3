//! The store against a plain list, under random commits.

use std::sync::Arc;

use core_store::{Check, MemoryBackend, Store, StoreOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::texts;

#[derive(Debug, Clone)]
enum Step {
    Push(u8, u8),
    Replace(usize, u8, u8),
    Remove(Vec<usize>),
    SetList,
}

#[derive(Debug, Clone)]
enum Round {
    Commit(Vec<Step>),
    RollBack(Vec<Step>),
    /// Another program rewrites the file compactly.
    Foreign(Vec<(u8, u8)>),
    /// This process starts anew.
    Restart,
}

fn record(id: u8, task: u8) -> Value {
    match id % 8 {
        0 => json!(id),
        1 => json!([{"id": format!("r{id}")}]),
        2 => json!({"task": task, "id": null}),
        _ => json!({"id": format!("r{id}"), "task": format!("t{}", task % 4), "in": {"id": "r9"}}),
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<(u8, u8)>().prop_map(|(id, task)| Step::Push(id, task)),
        3 => any::<(usize, u8, u8)>().prop_map(|(at, id, task)| Step::Replace(at, id, task)),
        1 => prop::collection::vec(any::<usize>(), 0..4).prop_map(Step::Remove),
        1 => Just(Step::SetList),
    ]
}

fn round() -> impl Strategy<Value = Round> {
    let steps = || prop::collection::vec(step(), 0..12);
    prop_oneof![
        8 => steps().prop_map(Round::Commit),
        1 => steps().prop_map(Round::RollBack),
        1 => prop::collection::vec(any::<(u8, u8)>(), 0..40).prop_map(Round::Foreign),
        1 => Just(Round::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]

    #[test]
    fn commits_do_what_a_list_does(rounds in prop::collection::vec(round(), 1..40)) {
        let disk = Arc::new(MemoryBackend::new());
        let open = || Store::with_backend(disk.clone(), StoreOptions::default()).app("/app".as_ref());
        let mut app = open();
        let mut model: Vec<Value> = Vec::new();
        let check: Check = Arc::new(|text| !text.contains("\"r9\""));
        for round in rounds {
            match round {
                Round::Commit(steps) | Round::RollBack(steps) if steps.is_empty() => {
                    app.begin(&["cards"]).unwrap().rollback().unwrap();
                }
                Round::Commit(ref steps) | Round::RollBack(ref steps) => {
                    let mut tx = app.begin(&["cards"]).unwrap();
                    let len = tx.snapshot("cards").unwrap().len();
                    let mut next: Vec<Option<Value>> = model.iter().cloned().map(Some).collect();
                    let mut pushed = Vec::new();
                    let mut removed = Vec::new();
                    for step in steps {
                        match step {
                            Step::Push(id, task) => {
                                tx.push("cards", &record(*id, *task).to_string()).unwrap();
                                pushed.push(Some(record(*id, *task)));
                            }
                            Step::Replace(at, id, task) if len > 0 => {
                                let at = at % len;
                                tx.replace("cards", at, &record(*id, *task).to_string()).unwrap();
                                next[at] = Some(record(*id, *task));
                            }
                            Step::Remove(at) if len > 0 => {
                                let at: Vec<usize> = at.iter().map(|at| at % len).collect();
                                tx.remove("cards", &at).unwrap();
                                removed.extend(at);
                            }
                            Step::SetList => tx.set_list("cards").unwrap(),
                            Step::Replace(..) | Step::Remove(_) => {}
                        }
                    }
                    removed.into_iter().for_each(|at| next[at] = None);
                    next.extend(pushed);
                    if matches!(round, Round::Commit(_)) {
                        tx.commit().unwrap();
                        model = next.into_iter().flatten().collect();
                    } else {
                        tx.rollback().unwrap();
                    }
                }
                Round::Foreign(records) => {
                    model = records.iter().map(|(id, task)| record(*id, *task)).collect();
                    let text = Value::Array(model.clone()).to_string();
                    disk.put("/app/state/cards.json".as_ref(), text.as_bytes()).unwrap();
                }
                Round::Restart => app = open(),
            }
            let snapshot = app.read("cards").unwrap();
            let values: Vec<Value> =
                texts(&snapshot).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            prop_assert_eq!(&values, &model);
            prop_assert_eq!(
                snapshot.all(&check),
                texts(&snapshot).iter().all(|text| check(text))
            );
            let is = |value: &Value, field: &str, want: &str| value.get(field) == Some(&json!(want));
            for (field, want) in [("id", "r9"), ("id", "r44"), ("task", "t1"), ("task", "t3")] {
                let found: Vec<usize> =
                    (0..model.len()).filter(|at| is(&model[*at], field, want)).collect();
                prop_assert_eq!(snapshot.find(field, want), found.first().copied());
                prop_assert_eq!(snapshot.matching(field, want), found);
            }
            if let Some(content) = disk.content("/app/state/cards.json".as_ref()) {
                let stored: Value = serde_json::from_slice(&content).unwrap();
                prop_assert_eq!(stored, Value::Array(model.clone()));
            }
        }
    }
}
