//! One bad operation for each rule, made of a closure: the suite must see what is wrong with each.

use std::cell::Cell;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// An operation as a function of its parameters and folder.
type Behaviour<'a> =
    dyn Fn(&BTreeMap<&str, &str>, &Path, LaneChoice) -> Result<String, HostError> + 'a;

struct Fake<'a> {
    behaviour: &'a Behaviour<'a>,
    lanes: Vec<LaneChoice>,
}

impl Caller for Fake<'_> {
    fn call(
        &self,
        lane: LaneChoice,
        _op: &Address,
        params: &[(String, String)],
        app_dir: &Path,
    ) -> Result<Reply, HostError> {
        let params = params.iter().map(|(name, text)| (&**name, &**text)).collect();
        (self.behaviour)(&params, app_dir, lane).map(Reply::Value)
    }

    fn lanes(&self) -> &[LaneChoice] {
        &self.lanes
    }

    fn only_lane(&self) -> &str {
        "it wants to abort"
    }
}

const SPEC: &str = "# echo\n\nSays it again.\n\n## Inputs\n\n| Name | Type | Default | Meaning |\n|---|---|---|---|\n\
    | `text` | string | `\"\"` | what |\n\n## Output\n\nThe text.\n\n## Errors\n\nNone.\n\n## Collections\n\nNone.\n\n\
    ## Examples\n\n```json\n{\"udf\": \"echo\", \"overrides\": {\"text\": \"x\"}}\n```\n\n\
    ```json\n{\"data\": \"x\", \"error\": null}\n```\n";

/// [`SPEC`] with these collections.
fn spec_with(collections: &str) -> String {
    SPEC.replace("## Collections\n\nNone.", &format!("## Collections\n\n{collections}"))
}

fn descriptor() -> Value {
    json!({
        "interface": 1, "project": "p", "op": "echo", "doc": "Says it again.", "panic": "unwind", "sdk": "0.1.0",
        "params": [{"name": "text", "type": "string", "default": "", "required": false}],
    })
}

/// What a sound operation does.
fn echo(params: &BTreeMap<&str, &str>) -> Result<String, HostError> {
    if let Some(name) = params.keys().find(|name| **name != "text") {
        return Err(HostError::BadParameter {
            message: format!("`echo` has no parameter `{name}`"),
        });
    }
    Ok(json!(params.get("text").copied().unwrap_or_default()).to_string())
}

fn put(path: PathBuf) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a bad operation goes around the store")]
    std::fs::write(path, "x").unwrap();
}

fn findings(
    descriptor: &Value,
    spec: &str,
    lanes: &[LaneChoice],
    behaviour: &Behaviour<'_>,
) -> BTreeMap<Rule, Finding> {
    let place = tempfile::tempdir().unwrap();
    let descriptor = Descriptor::parse(descriptor.to_string().as_bytes()).unwrap();
    let address = Address::new("w", "p", "echo");
    let callees = BTreeMap::new();
    let subject = Subject { address: &address, descriptor: &descriptor, spec, callees: &callees };
    let fake = Fake { behaviour, lanes: lanes.to_vec() };
    let mut found = BTreeMap::new();
    check(&subject, &fake, place.path(), &mut |_, _| {}, &mut |finding| {
        assert!(found.insert(finding.rule, finding).is_none(), "each rule is told once");
    })
    .unwrap();
    let told: Vec<Rule> = found.keys().copied().collect();
    assert_eq!(told.len(), Rule::ALL.len() - 1, "every rule but `loads` is told: {told:?}");
    found
}

const BOTH: [LaneChoice; 2] = [LaneChoice::Worker, LaneChoice::Inline];

/// Exactly this rule is broken, in these words.
#[track_caller]
fn breaks(rule: Rule, words: &str, descriptor: &Value, spec: &str, behaviour: &Behaviour<'_>) {
    let found = findings(descriptor, spec, &BOTH, behaviour);
    let broken: Vec<&Finding> =
        found.values().filter(|finding| finding.verdict == Verdict::Broken).collect();
    assert_eq!(
        broken.iter().map(|finding| finding.rule).collect::<Vec<_>>(),
        [rule],
        "{broken:#?}"
    );
    assert!(broken[0].what.iter().any(|what| what.contains(words)), "{broken:#?}");
    assert_eq!(broken[0].remedy, rule.remedy());
}

#[test]
fn a_sound_operation_keeps_every_rule() {
    let found = findings(&descriptor(), SPEC, &BOTH, &|params, _, _| echo(params));
    for (rule, finding) in &found {
        let want = if *rule == Rule::Writes { Verdict::Skipped } else { Verdict::Holds };
        assert_eq!(finding.verdict, want, "{finding:?}");
    }
    assert!(found[&Rule::Hostile].calls >= 60, "each twice and in two lanes: {found:#?}");
    let found = findings(&descriptor(), SPEC, &BOTH[..1], &|params, _, _| echo(params));
    let lanes = &found[&Rule::Lanes];
    assert_eq!(
        (lanes.verdict, &*lanes.what[0]),
        (Verdict::Skipped, "it wants to abort"),
        "with one lane there is nothing to compare"
    );
}

#[test]
fn a_descriptor_that_says_too_little_or_nonsense_is_seen() {
    let sound = |params: &BTreeMap<&str, &str>, _: &Path, _: LaneChoice| echo(params);
    for (key, value, words) in [
        ("doc", json!(" "), "no doc comment"),
        ("calls", json!(["nonsense"]), "neither `project.op`"),
        ("calls", json!(["p.absent"]), "there is no `p.absent`"),
        ("reads", json!([""]), "no name of a collection"),
        (
            "columns",
            json!([{"name": "x", "type": "s"}, {"name": "x", "type": "s"}]),
            "column `x` is there twice",
        ),
        ("columns", json!([{"name": "x", "type": "q"}]), "unknown type `q`"),
    ] {
        let mut it = descriptor();
        it[key] = value;
        breaks(Rule::Descriptor, words, &it, &spec_with("Reads ``."), &sound);
    }
    let mut it = descriptor();
    it["params"][0]["type"] = json!("integer");
    it["params"][0]["default"] = json!("soon");
    let spec = SPEC.replace("`\"\"`", "`soon`");
    breaks(Rule::Descriptor, "its default is `soon`", &it, &spec, &sound);
}

#[test]
fn a_spec_that_is_incomplete_or_untrue_is_seen() {
    for (from, to, words) in [
        ("## Errors\n", "## Faults\n", "no section `## Errors`"),
        ("`text` | string | `\"\"`", "`text` | string | `x`", "defaults to"),
        ("| `text` |", "| `words` |", "`words`, which the plugin does not take"),
        ("# echo\n", "# other\n", "not with `# echo`"),
        ("Says it again.\n\n## Inputs", "## Inputs", "says no purpose"),
    ] {
        let spec = SPEC.replacen(from, to, 1);
        assert_ne!(spec, SPEC);
        breaks(Rule::Spec, words, &descriptor(), &spec, &|params, _, _| echo(params));
    }
    let mut it = descriptor();
    it["reads"] = json!(["cards"]);
    let sound = |params: &BTreeMap<&str, &str>, _: &Path, _: LaneChoice| echo(params);
    breaks(Rule::Spec, "does not name `cards`", &it, &spec_with("Reads cards, `card`."), &sound);
}

#[test]
fn an_example_that_is_untrue_or_missing_is_seen() {
    let sound = |params: &BTreeMap<&str, &str>, _: &Path, _: LaneChoice| echo(params);
    for (from, to, words) in [
        ("\"data\": \"x\"", "\"data\": \"y\"", "example 1 answers otherwise"),
        ("\"udf\": \"echo\"", "\"udf\": \"other\"", "no example of the operation itself"),
        ("{\"text\": \"x\"}", "{\"text\": \"${3.a}\"}", "step 3 gave no data"),
        (
            "{\"text\": \"x\"}",
            "{\"word\": \"x\"}",
            "example 1 fails: `echo` has no parameter `word`",
        ),
        ("{\"data\": \"x\", \"error\": null}", "{", "JSON block 2"),
    ] {
        let spec = SPEC.replacen(from, to, 1);
        breaks(Rule::Examples, words, &descriptor(), &spec, &sound);
    }
}

#[test]
fn an_undeclared_parameter_that_is_taken_is_seen() {
    breaks(Rule::Undeclared, "is accepted", &descriptor(), SPEC, &|params, _, _| {
        Ok(json!(params.get("text").copied().unwrap_or_default()).to_string())
    });
    breaks(Rule::Undeclared, "refused without its name", &descriptor(), SPEC, &|params, _, _| {
        echo(params).map_err(|_| HostError::BadParameter { message: "no".to_owned() })
    });
}

#[test]
fn a_value_that_makes_it_panic_or_hang_is_seen() {
    let op = Address::new("w", "p", "echo");
    for (text, error, words) in [
        (
            "",
            HostError::Panicked { op: op.clone(), message: "index".into() },
            "`text` = the empty text",
        ),
        (
            "a\0b",
            HostError::Internal { message: "lost".into(), detail: String::new() },
            "`text` = a NUL",
        ),
        (
            "-1",
            HostError::Timeout { op, after: std::time::Duration::from_secs(1) },
            "did not finish",
        ),
    ] {
        breaks(Rule::Hostile, words, &descriptor(), SPEC, &move |params, _, _| {
            if params.get("text") == Some(&text) { Err(error.clone()) } else { echo(params) }
        });
    }
}

#[test]
fn a_read_that_writes_is_seen_wherever_it_writes() {
    for (path, words) in [
        ("state/cards.json", "`state/cards.json`"),
        ("notes", "`notes`"),
        ("../notes", "beside the state folder"),
    ] {
        breaks(Rule::ReadOnly, words, &descriptor(), SPEC, &move |params, app_dir, _| {
            put(app_dir.join(path));
            echo(params)
        });
    }
    let op = Address::new("w", "p", "echo");
    breaks(Rule::ReadOnly, "may not read `cards`", &descriptor(), SPEC, &move |params, _, _| {
        match params.get("text") {
            Some(&"12") => Err(HostError::Undeclared {
                op: op.clone(),
                message: "may not read `cards`".into(),
            }),
            _ => echo(params),
        }
    });
}

#[test]
fn a_write_beside_what_is_declared_is_seen() {
    let mut it = descriptor();
    it["writes"] = json!(["cards"]);
    let writes = |path: &'static str| {
        move |params: &BTreeMap<&str, &str>, app_dir: &Path, _: LaneChoice| {
            put(app_dir.join("state/cards.json"));
            put(app_dir.join("state/.cards.lock"));
            put(app_dir.join(path));
            echo(params)
        }
    };
    let spec = spec_with("Writes `cards`, logs `chats/<id>.ndjson`.");
    for path in ["state/tasks.json", "cards.json", "chats/a.ndjson"] {
        breaks(Rule::Writes, &format!("`{path}`"), &it, &spec, &writes(path));
    }
    let holds = |it: &Value, path| {
        let found = findings(it, &spec, &BOTH, &writes(path));
        assert_eq!(found[&Rule::Writes].verdict, Verdict::Holds, "{found:#?}");
        assert_eq!(found[&Rule::ReadOnly].verdict, Verdict::Skipped, "{found:#?}");
    };
    holds(&it, "state/cards.json");
    it["logs"] = json!(["chats"]);
    holds(&it, "chats/a.ndjson");
}

#[test]
fn an_answer_that_differs_without_saying_so_is_seen() {
    let count = Cell::new(0);
    let counts = |params: &BTreeMap<&str, &str>| {
        count.set(count.get() + 1);
        echo(params).map(|_| json!(format!("x{}", count.get())).to_string())
    };
    // In what no example shows.
    let seldom = |params: &BTreeMap<&str, &str>, _: &Path, _: LaneChoice| {
        if params.get("text") == Some(&"x") { echo(params) } else { counts(params) }
    };
    breaks(Rule::Deterministic, "a second equal call", &descriptor(), SPEC, &seldom);
    // In what its example shows: once as written, never again.
    let first = Cell::new(true);
    let spoilt = |params: &BTreeMap<&str, &str>, _: &Path, _: LaneChoice| {
        if first.replace(false) { echo(params) } else { counts(params) }
    };
    let found = findings(&descriptor(), SPEC, &BOTH[..1], &spoilt);
    let finding = &found[&Rule::Deterministic];
    assert!(finding.what[0].contains("once more on new state: example 1"), "{finding:#?}");
    // The example says so.
    let spec = SPEC.replace("{\"data\": \"x\"", "{\"data\": \"x<any>\"");
    let found = findings(&descriptor(), &spec, &BOTH, &|params, _, _| counts(params));
    for rule in [Rule::Deterministic, Rule::Lanes, Rule::Examples] {
        assert_eq!(found[&rule].verdict, Verdict::Holds, "{found:#?}");
    }
}

#[test]
fn an_answer_that_depends_on_the_lane_is_seen() {
    let there = |text: &'static str| {
        move |params: &BTreeMap<&str, &str>, _: &Path, lane: LaneChoice| match lane {
            LaneChoice::Inline if params.len() == 1 && params.get("text") == Some(&text) => {
                Ok("\"other\"".to_owned())
            }
            _ => echo(params),
        }
    };
    breaks(Rule::Lanes, "in the inline lane: example 1", &descriptor(), SPEC, &there("x"));
    breaks(Rule::Lanes, "`text` = `null`: the lanes", &descriptor(), SPEC, &there("null"));
    // Of an answer that varies, its kind.
    let spec = SPEC.replace("{\"data\": \"x\"", "{\"data\": \"<any>\"");
    breaks(Rule::Lanes, "the lanes worker and inline", &descriptor(), &spec, &|params, _, lane| {
        match params.get("text") {
            Some(&"12") if lane == LaneChoice::Worker => {
                Err(HostError::Raised { message: "no twelve".to_owned() })
            }
            _ => echo(params),
        }
    });
}

#[test]
fn after_some_calls_that_ended_their_process_no_more_are_made() {
    let op = Address::new("w", "p", "echo");
    let found = findings(&descriptor(), SPEC, &BOTH, &|params, _, _| {
        if params.get("text") == Some(&"x") || params.contains_key("no_such_parameter") {
            return echo(params);
        }
        let cause = crate::lane::Cause::Signal(11);
        Err(HostError::Crashed {
            op: op.clone(),
            cause,
            company: crate::lane::Company::None,
            detail: String::new(),
        })
    });
    let hostile = &found[&Rule::Hostile];
    assert_eq!((hostile.calls, hostile.what.len()), (3, 2), "{hostile:#?}");
    assert!(hostile.what[0].starts_with("`text` = the empty text, `text` = blanks, "));
    assert!(hostile.what[1].contains("no other value was tried"), "{hostile:#?}");
}
