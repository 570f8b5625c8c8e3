//! The schema of an app: read in both forms that collections have had, checked, and put into the present one.
//!
//! The old form keeps what belongs to a field in `options` (`options.values` of a select); a server of today takes a
//! collection with an old `schema` list and silently makes it without its fields. So it is never sent as it stands.

use sdk::prelude::*;

/// Fields that a collection of the old form had without naming them; one of today has only what it names.
const TIMES: [&str; 2] = [
    r#"{"name": "created", "type": "autodate", "onCreate": true, "onUpdate": false}"#,
    r#"{"name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true}"#,
];

/// Collections in the present form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema(Vec<Value>);

/// The field every collection has, as a server makes it itself.
const ID: &str = r#"{"name": "id", "type": "text", "system": true, "primaryKey": true, "required": true, "min": 15,
    "max": 15, "pattern": "^[a-z0-9]+$", "autogeneratePattern": "[a-z0-9]{15}"}"#;

impl Schema {
    /// Reads the text of a schema: a list of collections, or an object that holds one as `collections`.
    ///
    /// # Errors
    /// Every fault, each naming collection and field.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<String>> {
        let value: Value =
            text.parse().map_err(|error| vec![format!("the schema is not JSON: {error}")])?;
        let list = match &value {
            Value::Object(map) => map.get("collections").unwrap_or(&Value::Null),
            other => other,
        };
        let Value::Array(list) = list else {
            return Err(vec![
                "the schema is neither a list of collections nor {\"collections\": […]}".to_owned(),
            ]);
        };
        let mut faults = Vec::new();
        let collections: Vec<Value> = list
            .iter()
            .enumerate()
            .filter_map(|(at, it)| collection(at, it, &mut faults))
            .collect();
        if faults.is_empty() { Ok(Self(collections)) } else { Err(faults) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of collections stand for their ids in relations, as far as `ids` knows them. A new collection gets an
    /// id of its own, so that relations among new ones have something to name.
    pub(crate) fn with_ids(mut self, ids: &[(String, String)]) -> Self {
        let mut known = ids.to_vec();
        for collection in &mut self.0 {
            let name = text(collection, "name").to_owned();
            let found = known.iter().find(|(known, _)| *known == name).map(|(_, id)| id.clone());
            let given = text(collection, "id").to_owned();
            let id = match found {
                Some(id) => id,
                None if given.is_empty() => own_id(&name),
                None => given,
            };
            collection["id"] = id.clone().into();
            known.retain(|(known, _)| *known != name);
            known.push((name, id));
        }
        for field in self.0.iter_mut().flat_map(fields_mut) {
            let target = ["collectionId", "collectionName", "collection"]
                .iter()
                .map(|key| text(field, key))
                .find(|target| !target.is_empty())
                .map(str::to_owned);
            if let Some(target) = target.filter(|_| text(field, "type") == "relation") {
                let id = known.iter().find(|(name, _)| *name == target).map(|(_, id)| id.clone());
                field["collectionId"] = id.unwrap_or(target).into();
            }
        }
        self
    }

    pub(crate) fn to_value(&self) -> Value {
        Value::Array(self.0.clone())
    }

    /// What a rejection is about: `tasks.status: values: cannot be blank`, as far as its text tells. A server names
    /// a field by its position only.
    pub(crate) fn blamed(&self, rejection: &str) -> Vec<String> {
        let named = quoted_after(rejection, "collection ");
        let found = self.0.iter().find(|it| named.as_deref() == Some(text(it, "name")));
        let mut blamed = Vec::new();
        if let Some(collection) = found {
            for (key, fault) in details(rejection) {
                blamed.push(match key.as_slice() {
                    [part, at, rest @ ..] if part == "fields" => {
                        let field =
                            at.parse().ok().and_then(|at: usize| fields(collection).get(at));
                        let field = field.map_or(at.as_str(), |field| text(field, "name"));
                        let rest = if rest.is_empty() {
                            String::new()
                        } else {
                            format!("{}: ", rest.join("."))
                        };
                        format!("{}.{field}: {rest}{fault}", text(collection, "name"))
                    }
                    key => format!("{}: {}: {fault}", text(collection, "name"), key.join(".")),
                });
            }
        }
        if blamed.is_empty()
            && let Some(at) = rejection.split("/fields/").nth(1)
        {
            let digits: String = at.chars().take_while(char::is_ascii_digit).collect();
            let suspects: Vec<String> = self
                .0
                .iter()
                .filter(|it| found.is_none_or(|found| found == *it))
                .filter_map(|it| {
                    let field = fields(it).get(digits.parse::<usize>().ok()?)?;
                    let name = text(field, "name");
                    // An error that quotes the field is about that one.
                    let quoted = format!("\"name\":\"{name}\"");
                    (!rejection.contains("\"name\":") || rejection.contains(&quoted))
                        .then(|| format!("{}.{name}", text(it, "name")))
                })
                .collect();
            match suspects.as_slice() {
                [] => {}
                [one] => blamed.push(format!("{one}: rejected")),
                more => blamed.push(format!("one of {}: rejected", more.join(", "))),
            }
        }
        blamed
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn fields(collection: &Value) -> &[Value] {
    collection.get("fields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn fields_mut(collection: &mut Value) -> impl Iterator<Item = &mut Value> {
    collection.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten()
}

fn collection(at: usize, stored: &Value, faults: &mut Vec<String>) -> Option<Value> {
    let Value::Object(stored) = stored else {
        faults.push(format!("collection {} is not an object", at + 1));
        return None;
    };
    let mut made = stored.clone();
    let name = stored.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        faults.push(format!("collection {} has no `name`", at + 1));
        return None;
    }
    if !made.contains_key("type") {
        made.insert("type".to_owned(), "base".into());
    }
    let old = made.shift_remove("schema");
    if let Some(Value::Object(options)) = made.shift_remove("options") {
        // The query of a view; what accounts could do has no counterpart among these.
        if let Some(query) = options.get("query").filter(|_| !made.contains_key("viewQuery")) {
            made.insert("viewQuery".to_owned(), query.clone());
        }
    }
    let is_view = made["type"] == "view";
    let is_old = old.is_some() && !made.contains_key("fields");
    let list = match made.shift_remove("fields").or(old) {
        Some(Value::Array(list)) => list,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => {
            faults.push(format!("{name}: `fields` is not a list"));
            return None;
        }
    };
    let mut made_fields: Vec<Value> = Vec::with_capacity(list.len() + 1);
    for (at, stored) in list.iter().enumerate() {
        if let Some(field) = field(&name, at, stored, faults) {
            let field_name = text(&field, "name").to_owned();
            if made_fields.iter().any(|made| text(made, "name") == field_name) {
                faults.push(format!("{name}.{field_name}: there are two fields of this name"));
            }
            made_fields.push(field);
        }
    }
    if !is_view && !made_fields.iter().any(|field| text(field, "name") == "id") {
        // Named by us, it has a place that is known: a rejection counts it.
        made_fields.insert(0, ID.parse().unwrap_or(Value::Null));
    }
    for time in TIMES.iter().filter(|_| is_old && !is_view) {
        let time: Value = time.parse().unwrap_or(Value::Null);
        if !made_fields.iter().any(|field| text(field, "name") == text(&time, "name")) {
            made_fields.push(time);
        }
    }
    if !is_view {
        made.insert("fields".to_owned(), Value::Array(made_fields));
    }
    Some(Value::Object(made))
}

fn field(collection: &str, at: usize, stored: &Value, faults: &mut Vec<String>) -> Option<Value> {
    let Value::Object(stored) = stored else {
        faults.push(format!("{collection}: field {} is not an object", at + 1));
        return None;
    };
    let name = stored.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        faults.push(format!("{collection}: field {} has no `name`", at + 1));
        return None;
    }
    let kind = stored.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.is_empty() {
        faults.push(format!("{collection}.{name}: no `type`"));
        return None;
    }
    let mut made = stored.clone();
    match made.shift_remove("options") {
        None | Some(Value::Null) => {}
        Some(Value::Object(options)) => {
            for (key, value) in options {
                let key = match key.as_str() {
                    "noDecimal" => "onlyInt",
                    "convertUrls" => "convertURLs",
                    key => key,
                };
                // Null was how the old form said "no limit": that is the absent key.
                if !value.is_null() && !made.contains_key(key) {
                    made.insert(key.to_owned(), value);
                }
            }
            // In the old form a relation without a number had no limit; today that means a single one.
            if kind == "relation" && !made.contains_key("maxSelect") {
                made.insert("maxSelect".to_owned(), 999.into());
            }
        }
        Some(_) => faults.push(format!("{collection}.{name}: `options` is not an object")),
    }
    if kind == "select" {
        let values = made.get("values").and_then(Value::as_array);
        let good =
            values.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string));
        if !good {
            faults.push(format!(
                "{collection}.{name}: a select needs `values`, a list of texts that is not empty"
            ));
        }
    }
    Some(Value::Object(made))
}

/// An id for a new collection, the same at each import.
fn own_id(name: &str) -> String {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("ui{:013x}", hash >> 12)
}

/// `x` of the first `<before>"x"`.
fn quoted_after(text: &str, before: &str) -> Option<String> {
    let rest = text.split(&format!("{before}\"")).nth(1)?;
    Some(rest.split('"').next()?.to_owned())
}

/// The faults of a JSON object somewhere in the text, each with the keys that lead to it.
fn details(rejection: &str) -> Vec<(Vec<String>, String)> {
    let (Some(from), Some(to)) = (rejection.find('{'), rejection.rfind('}')) else {
        return Vec::new();
    };
    let Some(value) = rejection.get(from..=to).and_then(|text| text.parse::<Value>().ok()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    walk(&value, &mut Vec::new(), &mut found);
    found
}

fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    match value {
        Value::Object(map) => {
            if let Some(message) = map.get("message").and_then(Value::as_str) {
                found.push((path.clone(), message.to_owned()));
                return;
            }
            for (key, value) in map {
                path.push(key.clone());
                walk(value, path, found);
                path.pop();
            }
        }
        Value::String(text) => found.push((path.clone(), text.clone())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_become_the_present_one() {
        let old = r#"[{"name": "tasks", "schema": [
            {"name": "title", "type": "text", "required": true, "options": {"min": null, "max": 80, "pattern": ""}},
            {"name": "status", "type": "select", "options": {"maxSelect": 1, "values": ["todo", "done"]}},
            {"name": "count", "type": "number", "options": {"noDecimal": true}},
            {"name": "owner", "type": "relation", "options": {"collectionId": "people", "maxSelect": null}}
        ]}, {"name": "v", "type": "view", "options": {"query": "SELECT id FROM tasks"}}]"#;
        let new = r#"{"collections": [{"name": "tasks", "type": "base", "fields": [
            {"name": "title", "type": "text", "required": true, "max": 80, "pattern": ""},
            {"name": "status", "type": "select", "maxSelect": 1, "values": ["todo", "done"]},
            {"name": "count", "type": "number", "onlyInt": true},
            {"name": "owner", "type": "relation", "collectionId": "people", "maxSelect": 999},
            {"name": "created", "type": "autodate", "onCreate": true, "onUpdate": false},
            {"name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true}
        ]}, {"name": "v", "type": "view", "viewQuery": "SELECT id FROM tasks"}]}"#;
        assert_eq!(Schema::parse(old).unwrap(), Schema::parse(new).unwrap());
        let value = Schema::parse(old).unwrap().to_value();
        assert_eq!(value[0]["fields"][0]["name"], "id");
        assert!(value[0].get("schema").is_none() && value[1].get("fields").is_none());
        // Times of one's own stand for those that came by themselves, and a collection of today has none of those.
        for (schema, names) in [
            (
                r#"[{"name": "a", "schema": [{"name": "created", "type": "date"}]}]"#,
                &["id", "created", "updated"][..],
            ),
            (r#"[{"name": "a", "fields": [{"name": "t", "type": "text"}]}]"#, &["id", "t"]),
            (r#"[{"name": "a"}]"#, &["id"]),
        ] {
            let value = Schema::parse(schema).unwrap().to_value();
            let found: Vec<&str> = fields(&value[0]).iter().map(|it| text(it, "name")).collect();
            assert_eq!(found, names, "{schema}");
        }
        // A field in the new form with a stray `options` keeps what it says itself.
        let mixed = r#"[{"name": "a", "fields": [{"name": "s", "type": "select", "values": ["x"], "options": {"values": ["y"]}}]}]"#;
        assert_eq!(
            Schema::parse(mixed).unwrap().to_value()[0]["fields"][1]["values"],
            json!(["x"])
        );
    }

    #[test]
    fn every_fault_names_its_field() {
        for (text, want) in [
            ("{", "not JSON"),
            ("3", "neither a list"),
            ("[1]", "collection 1 is not an object"),
            (r#"[{"type": "base"}]"#, "collection 1 has no `name`"),
            (r#"[{"name": "a", "fields": {}}]"#, "a: `fields` is not a list"),
            (r#"[{"name": "a", "fields": [{"type": "text"}]}]"#, "a: field 1 has no `name`"),
            (r#"[{"name": "a", "fields": [{"name": "t"}]}]"#, "a.t: no `type`"),
            (
                r#"[{"name": "a", "schema": [{"name": "s", "type": "select", "options": {"values": []}}]}]"#,
                "a.s: a select",
            ),
            (
                r#"[{"name": "a", "fields": [{"name": "s", "type": "select", "options": 1}]}]"#,
                "a.s: `options`",
            ),
            (
                r#"[{"name": "a", "fields": [{"name": "t", "type": "text"}, {"name": "t", "type": "url"}]}]"#,
                "a.t: there are two",
            ),
        ] {
            let faults = Schema::parse(text).unwrap_err().join("\n");
            assert!(faults.contains(want), "{text}: {faults}");
        }
        assert!(Schema::parse("[]").unwrap().is_empty());
    }

    #[test]
    fn relations_name_collections() {
        let schema = r#"[{"name": "tasks", "fields": [
            {"name": "owner", "type": "relation", "collectionId": "people"},
            {"name": "project", "type": "relation", "collection": "projects"},
            {"name": "other", "type": "relation", "collectionId": "pbc_1"}
        ]}, {"name": "projects", "fields": []}]"#;
        let known =
            [("people".to_owned(), "pbc_9".to_owned()), ("tasks".to_owned(), "pbc_t".to_owned())];
        let value = Schema::parse(schema).unwrap().with_ids(&known).to_value();
        let targets: Vec<&str> =
            (1..4).map(|at| value[0]["fields"][at]["collectionId"].as_str().unwrap()).collect();
        assert_eq!(targets, ["pbc_9", own_id("projects").as_str(), "pbc_1"]);
        assert_eq!(
            (&value[0]["id"], &value[1]["id"]),
            (&json!("pbc_t"), &json!(own_id("projects")))
        );
        assert_eq!(own_id("projects").len(), 15);
    }

    #[test]
    fn a_rejection_names_the_field() {
        let schema = r#"[{"name": "tasks", "fields": [{"name": "title", "type": "text"}, {"name": "due", "type": "number"}]},
            {"name": "notes", "fields": [{"name": "body", "type": "nosuch"}, {"name": "n", "type": "number"}]}]"#;
        let schema = Schema::parse(schema).unwrap();
        for (rejection, want) in [
            (
                "Data validations failed for collection \"tasks\" (pbc_1):\n{\n  \"fields\": {\n    \"2\": {\n      \"max\": \"Must be greater\"\n    }\n  }\n}.",
                &["tasks.due: max: Must be greater"][..],
            ),
            (
                "Data validations failed for collection \"tasks\" (pbc_1):\n{\n  \"listRule\": \"Invalid rule.\"\n}.",
                &["tasks: listRule: Invalid rule."],
            ),
            (
                "json: cannot unmarshal JSON object into Go core.fieldWithType within \"/fields/1\": missing or unknown field type in {\"name\":\"body\",\"type\":\"nosuch\"}.",
                &["notes.body: rejected"],
            ),
            (
                "json: cannot unmarshal JSON object within \"/fields/2\": cannot unmarshal JSON string within \"/min\".",
                &["one of tasks.due, notes.n: rejected"],
            ),
            ("the disk is full", &[]),
        ] {
            assert_eq!(schema.blamed(rejection), want, "{rejection}");
        }
    }
}
