use proptest::prelude::*;
use serde_json::json;

use super::*;

const BUILD: StateClass =
    StateClass { file_name: "build_state.json", legacy_keys: StateClass::BUILD_KEYS };

fn load(text: &str) -> Loaded {
    WorkState::load(Some(text.as_bytes()), &BUILD)
}

#[test]
fn a_missing_file_is_the_default() {
    let loaded = WorkState::load(None, &StateClass::WORK);
    assert!(!loaded.corrupt && loaded.repaired.is_empty());
    assert!(loaded.state.digest().is_empty());
    assert!(loaded.state.to_text().starts_with("{\n  \"schema\": 1,\n  \"rounds\": 0,\n"));
    assert_eq!(load(&loaded.state.to_text()).state.to_text(), loaded.state.to_text());
}

#[test]
fn unknown_keys_stay_where_and_how_they_were() {
    let text = "{\"later\":[1.0,\n 1e5,{\"a\":\"\\ud800\"}], \"rounds\": 2, \"x\\n\": null, \"built\":true}";
    let mut state = load(text).state;
    assert_eq!(state.rounds, 2);
    state.rounds = 3;
    let saved = state.to_text();
    assert!(
        saved.starts_with(
            "{\n  \"later\": [1.0,\n 1e5,{\"a\":\"\\ud800\"}],\n  \"rounds\": 3,\n  \"x\\n\": null,\n  \"built\": true,\n  \"schema\": 1,\n"
        ),
        "{saved}"
    );
    assert_eq!(load(&saved).state.to_text(), saved);
    state.reset();
    assert_eq!(state.rounds, 0);
    assert!(
        state.to_text().starts_with("{\n  \"later\": [1.0,"),
        "an adoption keeps what it does not know"
    );
}

#[test]
fn a_last_result_from_disk_keeps_its_bytes() {
    let text = "{\"last_result\":{\"step\":\"build\",\"at\":1.50,\"errors\":[\"e\"],\"host\":7}}";
    let state = load(text).state;
    assert!(
        state.to_text().contains("{\"step\":\"build\",\"at\":1.50,\"errors\":[\"e\"],\"host\":7}")
    );
    let result = state.last_result.unwrap();
    assert_eq!(
        (result.step(), result.errors(), result.is_failure()),
        ("build", &["e".to_owned()][..], true)
    );
}

#[test]
fn old_names_give_way_to_new_ones() {
    let loaded = load(
        "{\"fix_rounds\":2,\"launched\":true,\"validated\":true,\"walk_failures\":[\"f\"],\"walk_attempts\":1,\"last_validate\":{\"step\":\"s\"}}",
    );
    assert_eq!(
        json!(loaded.state.digest()),
        json!({"rounds": 2, "staged": true, "verified": true, "check_failures": ["f"], "check_attempts": 1, "last_result": {"step": "s"}})
    );
    let text = loaded.state.to_text();
    assert!(text.starts_with("{\n  \"rounds\": 2,\n  \"staged\": true,"), "{text}");
    assert!(!text.contains("walk_"));
    // Where the new name is there, the old one is just an unknown key.
    let both = load("{\"fix_rounds\":2,\"rounds\":5}").state;
    assert_eq!(both.rounds, 5);
    assert!(both.to_text().contains("\"fix_rounds\": 2"));
    // Names are those of the class.
    let plain = WorkState::load(Some(b"{\"fix_rounds\":2}"), &StateClass::WORK).state;
    assert_eq!(plain.rounds, 0);
    // An old name with a wrong value is repaired under the new name.
    assert_eq!(load("{\"fix_rounds\":\"x\"}").repaired, ["rounds"]);
}

#[test]
fn a_wrong_type_costs_that_field_only() {
    for (field, bad) in [
        ("schema", "\"1\""),
        ("rounds", "-1"),
        ("rounds", "1.5"),
        ("rounds", "4294967296"),
        ("rounds", "null"),
        ("awaiting_user_decision", "1"),
        ("pending_round", "\"true\""),
        ("built", "null"),
        ("staged", "0"),
        ("verified", "\"yes\""),
        ("check_failures", "\"- A\""),
        ("check_failures", "[1]"),
        ("check_attempts", "true"),
        ("checked_ok", "{}"),
        ("last_result", "[]"),
        ("last_result", "{\"step\":1}"),
        ("last_result", "{\"errors\":[]}"),
        ("last_result", "{\"step\":\"s\",\"errors\":\"e\"}"),
        ("user_leads", "[null]"),
        ("backlog", "3"),
        ("infra_blocked", "[]"),
        ("notify_step_issued", "\"\""),
        ("presentation_asked", "{}"),
        ("update_scope", "2"),
        ("touched_areas", "false"),
    ] {
        let other = if field == "rounds" { "built" } else { "rounds" };
        let good = if field == "rounds" { "true" } else { "7" };
        let loaded = load(&format!("{{\"{field}\":{bad},\"{other}\":{good},\"new\":0}}"));
        assert!(!loaded.corrupt);
        assert_eq!(loaded.repaired, [field], "{bad}");
        assert_eq!(loaded.state.digest().len(), 2, "{field} {bad}: {:?}", loaded.state.digest());
        assert!(load(&loaded.state.to_text()).repaired.is_empty());
    }
    assert!(load("{\"last_result\":null}").repaired.is_empty());
}

#[test]
fn what_is_no_object_is_corrupt() {
    for text in [
        "",
        " ",
        "null",
        "[]",
        "\"{}\"",
        "{\"rounds\":1",
        "{\"rounds\":1}x",
        "{\"rounds\":NaN}",
        "\u{feff}{}",
        "{'a':1}",
    ] {
        let loaded = load(text);
        assert!(loaded.corrupt, "{text:?}");
        assert!(loaded.state.digest().is_empty());
    }
    assert!(WorkState::load(Some(b"{\"a\":\"\xff\"}"), &BUILD).corrupt);
    assert!(!load("{}").corrupt);
    assert_eq!(BUILD.path(), "logs/build_state.json");
    assert_eq!(StateClass::WORK.corrupt_path(3), "logs/work_state.corrupt-3.json");
}

#[test]
fn a_repeated_key_keeps_its_last_value() {
    let state = load("{\"rounds\":1,\"x\":1,\"rounds\":2,\"x\":2}").state;
    assert_eq!(state.rounds, 2);
    assert!(state.to_text().starts_with("{\n  \"rounds\": 2,\n  \"x\": 2,"));
}

#[test]
fn phases_in_their_order() {
    let mut state = WorkState::default();
    assert_eq!(state.phase(), Phase::Working);
    state.built = true;
    assert_eq!(state.phase(), Phase::Working);
    state.staged = true;
    assert_eq!(state.phase(), Phase::Checking);
    state.awaiting_user_decision = true;
    assert_eq!(state.phase(), Phase::Gated);
    state.infra_blocked = true;
    assert_eq!(state.phase(), Phase::PausedInfra);
    state.verified = true;
    assert_eq!(state.phase(), Phase::Done);
}

proptest! {
    #[test]
    fn saving_and_loading_changes_nothing(rounds in 0u32.., built: bool, leads in prop::collection::vec("(?s).{0,9}", 0..4), step in "(?s).{0,5}") {
        let mut state = load("{\"zz\": {\"a\":1}, \"built\": false}").state;
        state.rounds = rounds;
        state.built = built;
        state.user_leads = leads;
        state.last_result = Some(LastResult::failure(&step, &state.user_leads, Moment(7)));
        let text = state.to_text();
        let again = load(&text);
        prop_assert!(!again.corrupt && again.repaired.is_empty());
        prop_assert_eq!(again.state.to_text(), text);
        prop_assert_eq!(again.state.digest(), state.digest());
    }
}
