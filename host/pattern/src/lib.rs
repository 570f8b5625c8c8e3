//! Expected values with placeholders (`<iso-ms>`, `<hex:12#label>`, `${1.id}` …) against real ones.
//!
//! - A token `<iso-ms>`, `<hex:12>`, `<uuid>`, `<any>` … matches a form; with `#label`, or the name of an `id:`, equal
//!   names match equal texts.
//! - A reference `${2.id}` stands for data of an earlier step, `${app_dir}` for the folder of the case.
//!
//! The examples of a `spec.md` and the cases of the tests are written in it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

/// How far a matched time may lie from now.
const CLOCK_SLACK_SECS: i64 = 900;

/// What is known while one case runs.
#[derive(Debug)]
pub struct Scope {
    /// The case's folder: `${app_dir}` and `<cwd>`.
    pub root: PathBuf,
    /// Data of earlier steps, by their number (from 1).
    pub results: HashMap<usize, Value>,
    bound: HashMap<String, String>,
    reference: Regex,
}

impl Scope {
    /// An empty scope for the case in `root`.
    pub fn new(root: PathBuf) -> Scope {
        Scope {
            root,
            results: HashMap::new(),
            bound: HashMap::new(),
            reference: Regex::new(r"\$\{(app_dir|\d+(?:\.[^.}]+)*)\}")
                .expect("the expression is fixed"),
        }
    }

    /// Puts references and bound ids into every string of a value.
    ///
    /// # Errors
    /// A reference leads to nothing.
    pub fn expand(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match self.whole_reference(text)? {
                Some(found) => found,
                None => Value::String(self.bound_ids(&self.references(text)?)),
            },
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.expand(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let expanded = fields.iter().map(|(key, it)| Ok((key.clone(), self.expand(it)?)));
                Value::Object(expanded.collect::<Result<_, String>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Replaces the references inside a text.
    ///
    /// # Errors
    /// One of them leads to nothing.
    pub fn references(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for found in self.reference.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            out.push_str(&text[end..whole.start()]);
            match self.lookup(&found[1])? {
                Value::String(text) => out.push_str(&text),
                other => out.push_str(&other.to_string()),
            }
            end = whole.end();
        }
        out.push_str(&text[end..]);
        Ok(out)
    }

    /// Whether `got` is what `want` describes; names that match for the first time are bound.
    ///
    /// # Errors
    /// Where and how they differ.
    pub fn compare(&mut self, want: &Value, got: &Value, path: &str) -> Result<(), String> {
        match (want, got) {
            (Value::String(text), _) => match self.whole_reference(text)? {
                Some(value) if same(&value, got) => Ok(()),
                Some(value) => Err(format!("{path}: want {}, got {}", short(&value), short(got))),
                None => {
                    let got = got
                        .as_str()
                        .ok_or_else(|| format!("{path}: want text, got {}", short(got)))?;
                    self.compare_text(text, got).map_err(|why| format!("{path}: {why}"))
                }
            },
            (Value::Object(want), Value::Object(fields)) => {
                let missing: Vec<_> =
                    want.keys().filter(|key| !fields.contains_key(*key)).collect();
                let extra: Vec<_> = fields.keys().filter(|key| !want.contains_key(*key)).collect();
                if !missing.is_empty() || !extra.is_empty() {
                    return Err(format!("{path}: missing keys {missing:?}, extra keys {extra:?}"));
                }
                want.iter().try_for_each(|(key, value)| {
                    self.compare(value, &fields[key], &format!("{path}.{key}"))
                })
            }
            (Value::Array(want), Value::Array(items)) if want.len() == items.len() => {
                let mut pairs = want.iter().zip(items).enumerate();
                pairs.try_for_each(|(at, (value, item))| {
                    self.compare(value, item, &format!("{path}[{at}]"))
                })
            }
            _ if same(want, got) => Ok(()),
            _ => Err(format!("{path}: want {}, got {}", short(want), short(got))),
        }
    }

    /// [`Scope::compare`] for a text template.
    ///
    /// # Errors
    /// As [`Scope::compare`].
    pub fn compare_text(&mut self, template: &str, got: &str) -> Result<(), String> {
        let template = self.bound_ids(&self.references(template)?);
        let mut form = String::from("^(?s:");
        let mut tokens = Vec::new();
        let mut end = 0;
        for found in token().captures_iter(&template) {
            let whole = found.get(0).expect("group 0 is the match");
            form += &regex::escape(&template[end..whole.start()]);
            end = whole.end();
            let kind = found[1].to_owned();
            form += &self.form_of(&kind);
            tokens.push((kind, found.get(2).map(|label| label.as_str().to_owned())));
        }
        if tokens.is_empty() {
            return if template == got { Ok(()) } else { Err(text_difference(&template, got)) };
        }
        form += &regex::escape(&template[end..]);
        form += ")$";
        let form = Regex::new(&form).expect("the form is built from escaped parts");
        let Some(found) = form.captures(got) else { return Err(text_difference(&template, got)) };
        for ((kind, label), text) in tokens.into_iter().zip(found.iter().skip(1).flatten()) {
            self.accept(&kind, label, text.as_str())?;
        }
        Ok(())
    }

    fn form_of(&self, kind: &str) -> String {
        let form = match kind {
            "iso-ms" => r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
            "iso-s" => r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
            "minute-utc" => r"\d{4}-\d\d-\d\d \d\d:\d\d UTC",
            "uuid4hex" => "[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}",
            "uuid" => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
            "any" => ".+",
            "host" => return format!("({})", regex::escape(&host_name())),
            "cwd" => return format!("({})", regex::escape(&self.root.to_string_lossy())),
            id if id.starts_with("id:") => r"fr-\d{8}-[0-9a-f]{6}",
            hex => return format!("([0-9a-f]{{{}}})", hex.trim_start_matches("hex:")),
        };
        format!("({form})")
    }

    fn accept(&mut self, kind: &str, label: Option<String>, text: &str) -> Result<(), String> {
        let moment = match kind {
            "iso-ms" | "iso-s" => Some(text.to_owned()),
            "minute-utc" => {
                Some(format!("{}:00Z", text.trim_end_matches(" UTC").replace(' ', "T")))
            }
            _ => None,
        };
        if let Some(moment) = moment {
            let then: Timestamp = moment.parse().map_err(|error| format!("{text}: {error}"))?;
            if (Timestamp::now().as_second() - then.as_second()).abs() > CLOCK_SLACK_SECS {
                return Err(format!("time {text} is not the current UTC time"));
            }
        }
        let name = if kind.starts_with("id:") { Some(kind.to_owned()) } else { label };
        let Some(name) = name else { return Ok(()) };
        match self.bound.insert(name.clone(), text.to_owned()) {
            Some(before) if before != text => {
                Err(format!("<{name}> is {text} here but {before} before"))
            }
            _ => Ok(()),
        }
    }

    fn bound_ids(&self, text: &str) -> String {
        let put = |found: &regex::Captures<'_>| {
            self.bound.get(&found[1]).unwrap_or(&found[0].to_owned()).clone()
        };
        token().replace_all(text, put).into_owned()
    }

    fn whole_reference(&self, text: &str) -> Result<Option<Value>, String> {
        match self.reference.captures(text) {
            Some(found) if found[0].len() == text.len() => self.lookup(&found[1]).map(Some),
            _ => Ok(None),
        }
    }

    fn lookup(&self, expression: &str) -> Result<Value, String> {
        if expression == "app_dir" {
            return Ok(Value::from(self.root.to_string_lossy()));
        }
        let mut parts = expression.split('.');
        let step: usize = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(|| format!("`${{{expression}}}` names no step"))?;
        let start = self
            .results
            .get(&step)
            .ok_or_else(|| format!("`${{{expression}}}`: step {step} gave no data"))?;
        let found = parts.try_fold(start, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        });
        found.cloned().ok_or_else(|| format!("`${{{expression}}}` leads to nothing"))
    }
}

/// Whether a part of the value stands for a text that differs from one run to the next.
pub fn varies(value: &Value) -> bool {
    match value {
        Value::String(text) => token().is_match(text),
        Value::Array(items) => items.iter().any(varies),
        Value::Object(fields) => fields.values().any(varies),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn token() -> &'static Regex {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"<(hex:\d+|iso-ms|iso-s|minute-utc|uuid4hex|uuid|host|cwd|any|id:fr-\d+)(?:#(\w+))?>",
        )
        .expect("the expression is fixed")
    });
    &TOKEN
}

/// JSON equality: integers exactly, `1` equals `1.0`, `true` never equals `1`.
pub fn same(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Number(want), Value::Number(got)) => {
            let (want, got) = (want.to_string(), got.to_string());
            let integer =
                |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            if integer(&want) && integer(&got) {
                want == got
            } else {
                want.parse::<f64>() == got.parse::<f64>()
            }
        }
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| same(want, got))
        }
        (Value::Object(want), Value::Object(got)) => {
            want.len() == got.len()
                && want.iter().all(|(key, want)| got.get(key).is_some_and(|got| same(want, got)))
        }
        _ => want == got,
    }
}

fn text_difference(want: &str, got: &str) -> String {
    let at = want.chars().zip(got.chars()).take_while(|(want, got)| want == got).count();
    let around = |text: &str| text.chars().skip(at.saturating_sub(25)).take(85).collect::<String>();
    format!("at char {at} want {:?}, got {:?}", around(want), around(got))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A value for a message, cut to a readable length.
fn short(value: &Value) -> String {
    const LIMIT: usize = 300;
    let text = value.to_string();
    match text.char_indices().nth(LIMIT) {
        None => text,
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_match_their_form_and_labels_bind() {
        for (want, got, fits) in [
            (json!({"id": "card_<hex:4>"}), json!({"id": "card_0a9f"}), true),
            (json!({"id": "card_<hex:4>"}), json!({"id": "card_0A9F"}), false),
            (json!(["<hex:2#x>", "<hex:2#x>"]), json!(["ab", "ab"]), true),
            (json!(["<hex:2#x>", "<hex:2#x>"]), json!(["ab", "cd"]), false),
            (json!("<iso-ms>"), json!("2001-01-01T00:00:00.000Z"), false),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2.0]), json!([1.0, 2]), true),
            (json!(true), json!(1), false),
            (json!("${1.a.0}"), json!("first"), true),
            (json!("x ${app_dir}"), json!("x /case"), true),
        ] {
            let mut scope = Scope::new("/case".into());
            scope.results.insert(1, json!({"a": ["first"]}));
            let compared = scope.compare(&want, &got, "$");
            assert_eq!(compared.is_ok(), fits, "{want} {got}: {compared:?}");
        }
    }

    #[test]
    fn a_reference_to_nothing_is_said() {
        let scope = Scope::new("/case".into());
        for text in ["${7.id}", "a ${7.id}"] {
            let error = scope.expand(&json!({"x": [text]})).unwrap_err();
            assert!(error.contains("step 7 gave no data"), "{error}");
        }
        assert_eq!(scope.expand(&json!([null, 1, "plain"])), Ok(json!([null, 1, "plain"])));
    }

    #[test]
    fn what_varies_is_what_holds_a_token() {
        assert!(varies(&json!({"a": ["x <iso-ms>"]})));
        assert!(!varies(&json!({"a": ["x <b> ${1.id}", 1, null]})));
    }
}
