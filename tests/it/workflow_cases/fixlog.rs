//! Ledger attempts under a size cap: what is kept, the exact text.

use sdk::workflow::ledger::{Attempt, append, excerpt, settle};
use serde_json::{Value, json};

use super::{Report, list_at, text_at};

pub(super) fn run(row: &Value, report: &mut Report) {
    report.known_keys("expect", &row["expect"], &["kept", "text"]);
    let mut text = String::new();
    for attempt in list_at(row, "attempts") {
        let entry = Attempt {
            agent: text_at(attempt, "agent").to_owned(),
            given: text_at(attempt, "given").to_owned(),
            reported: text_at(attempt, "reported").to_owned(),
        };
        text = append(&text, &entry, text_at(row, "stamp"));
        if let Some(outcome) =
            attempt.get("outcome").and_then(Value::as_str).filter(|text| *text != "pending")
        {
            text = settle(&text, outcome);
        }
    }
    let cap = row["cap"].as_u64().and_then(|cap| cap.try_into().ok()).unwrap_or(usize::MAX);
    let got = excerpt(&text, cap);
    report.compare("expect", &row["expect"], &json!({"kept": got.kept, "text": got.text}));
}
