//! Expected values with placeholders (`<iso-ms>`, `<hex:12#label>`, `${1.id}` …) against real ones.
//!
//! The grammar is that of the cases: a token matches a form, a label or an `id:` name binds the text it matched,
//! and a reference stands for data of an earlier step.

use std::collections::HashMap;
use std::path::PathBuf;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

use super::short;

/// How far a matched time may lie from now.
const CLOCK_SLACK_SECS: i64 = 900;

/// What is known while one case runs.
pub(crate) struct Scope {
    /// The case's folder: `${app_dir}` and `<cwd>`.
    pub(crate) root: PathBuf,
    /// Data of earlier steps, by their number (from 1).
    pub(crate) results: HashMap<usize, Value>,
    bound: HashMap<String, String>,
    token: Regex,
    reference: Regex,
}

impl Scope {
    /// An empty scope for the case in `root`.
    pub(crate) fn new(root: PathBuf) -> Scope {
        let token =
            r"<(hex:\d+|iso-ms|iso-s|minute-utc|uuid4hex|uuid|host|cwd|any|id:fr-\d+)(?:#(\w+))?>";
        Scope {
            root,
            results: HashMap::new(),
            bound: HashMap::new(),
            token: Regex::new(token).unwrap(),
            reference: Regex::new(r"\$\{(app_dir|\d+(?:\.[^.}]+)*)\}").unwrap(),
        }
    }

    /// Puts references and bound ids into every string of a value.
    pub(crate) fn expand(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match self.whole_reference(text) {
                Some(found) => found,
                None => Value::String(self.bound_ids(&self.references(text))),
            },
            Value::Array(items) => items.iter().map(|item| self.expand(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, it)| (key.clone(), self.expand(it))).collect()
            }
            other => other.clone(),
        }
    }

    /// Replaces the references inside a text.
    pub(crate) fn references(&self, text: &str) -> String {
        let put = |found: &regex::Captures<'_>| match self.lookup(&found[1]) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.reference.replace_all(text, put).into_owned()
    }

    /// `Err` says where and how `got` differs from `want`.
    pub(crate) fn compare(&mut self, want: &Value, got: &Value, path: &str) -> Result<(), String> {
        match (want, got) {
            (Value::String(text), _) => match self.whole_reference(text) {
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
    pub(crate) fn compare_text(&mut self, template: &str, got: &str) -> Result<(), String> {
        let template = self.bound_ids(&self.references(template));
        let mut form = String::from("^(?s:");
        let mut tokens = Vec::new();
        let mut end = 0;
        for found in self.token.captures_iter(&template) {
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
            "cwd" => return format!("({})", regex::escape(self.root.to_str().unwrap())),
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
        self.token.replace_all(text, put).into_owned()
    }

    fn whole_reference(&self, text: &str) -> Option<Value> {
        let found = self.reference.captures(text)?;
        (found.get(0)?.as_str() == text).then(|| self.lookup(&found[1]))
    }

    fn lookup(&self, expression: &str) -> Value {
        if expression == "app_dir" {
            return Value::from(self.root.to_str().unwrap());
        }
        let mut parts = expression.split('.');
        let step: usize =
            parts.next().and_then(|part| part.parse().ok()).expect("a reference names a step");
        let start = self.results.get(&step).unwrap_or_else(|| panic!("step {step} gave no data"));
        let found = parts.try_fold(start, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        });
        found.unwrap_or_else(|| panic!("nothing at {expression}")).clone()
    }
}

/// JSON equality: integers exactly, `1` equals `1.0`, `true` never equals `1`.
pub(crate) fn same(want: &Value, got: &Value) -> bool {
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
    rustix::system::uname().nodename().to_str().expect("the host name is text").to_owned()
}
