//! A transaction against a plain list: what it shows after every step, and what it stores.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail as the test does")]

use proptest::prelude::*;
use sdk::prelude::*;
use sdk::testing::TestHost;

/// Writes cards.
#[udf(writes("cards"))]
fn probe(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

#[derive(Debug, Clone)]
enum Step {
    Push {
        id: u8,
        status: u8,
    },
    /// Sets the status of the first record with this id.
    Update {
        id: u8,
        status: u8,
    },
    /// Removes the first record with this id.
    Remove {
        id: u8,
    },
    /// Removes all records of this status.
    Retain {
        status: u8,
    },
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let (id, status) = (0..6_u8, 0..3_u8);
    prop_oneof![
        4 => (id.clone(), status.clone()).prop_map(|(id, status)| Step::Push { id, status }),
        4 => (id.clone(), status.clone()).prop_map(|(id, status)| Step::Update { id, status }),
        3 => id.prop_map(|id| Step::Remove { id }),
        1 => status.prop_map(|status| Step::Retain { status }),
        1 => Just(Step::Clear),
    ]
}

type Model = Vec<(String, String)>;

fn json(model: &Model) -> Value {
    model.iter().map(|(id, status)| json!({"id": id, "status": status})).collect()
}

fn pairs(records: &[Record]) -> Model {
    let text = |record: &Record, field: &str| record.str(field).unwrap().into_owned();
    records.iter().map(|record| (text(record, "id"), text(record, "status"))).collect()
}

fn apply(step: &Step, cards: &mut CollectionMut<'_, '_>, model: &mut Model) {
    let (name, state) = (|id: &u8| format!("card_{id}"), |status: &u8| format!("s{status}"));
    match step {
        Step::Push { id, status } => {
            let card = Object::new().set("id", name(id)).set("status", state(status));
            cards.push(card).unwrap();
            model.push((name(id), state(status)));
        }
        Step::Update { id, status } => {
            let found = model.iter_mut().find(|card| card.0 == name(id));
            let card = cards.get(&name(id));
            assert_eq!(card.is_some(), found.is_some());
            if let (Some(card), Some(found)) = (card, found) {
                let changed =
                    cards.update(&card, card.edit().set("status", state(status))).unwrap();
                assert!(changed.is("status", &state(status)));
                found.1 = state(status);
            }
        }
        Step::Remove { id } => {
            let found = model.iter().position(|card| card.0 == name(id));
            let card = cards.find("id", &name(id));
            assert_eq!(card.is_some(), found.is_some());
            if let (Some(card), Some(found)) = (card, found) {
                cards.remove(&card).unwrap();
                model.remove(found);
            }
        }
        Step::Retain { status } => {
            let gone = cards.retain(|card| !card.is("status", &state(status)));
            let (stays, goes): (Model, Model) =
                model.drain(..).partition(|card| card.1 != state(status));
            assert_eq!(pairs(&gone), goes);
            *model = stays;
        }
        Step::Clear => {
            cards.clear();
            model.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]
    #[test]
    fn a_transaction_is_a_list(
        before in proptest::collection::vec((0..6_u8, 0..3_u8), 0..8),
        steps in proptest::collection::vec(step(), 0..12),
        commit in any::<bool>(),
    ) {
        let host = TestHost::new();
        let mut model: Model =
            before.iter().map(|(id, s)| (format!("card_{id}"), format!("s{s}"))).collect();
        let seeded = json(&model);
        host.seed("cards", &seeded.to_string());
        let ctx = host.context(UDF);
        let tx = ctx.begin(&["cards"]).unwrap();
        let mut cards = tx.collection("cards").unwrap();
        for step in &steps {
            apply(step, &mut cards, &mut model);
            prop_assert_eq!(&pairs(&cards.records()), &model);
            prop_assert_eq!(cards.len(), model.len());
            for status in ["s0", "s1", "s2"] {
                let want: Model = model.iter().filter(|card| card.1 == status).cloned().collect();
                prop_assert_eq!(&pairs(&cards.matching("status", status)), &want);
                prop_assert_eq!(
                    cards.find("status", status).map(|card| pairs(&[card])),
                    want.first().map(|card| vec![card.clone()])
                );
            }
        }
        if commit {
            tx.commit().unwrap();
            prop_assert_eq!(host.stored("cards"), json(&model));
        } else {
            drop(tx);
            prop_assert_eq!(host.stored("cards"), seeded);
        }
        prop_assert!(ctx.fault().is_none());
    }
}
