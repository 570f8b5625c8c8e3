//! Reads what a model decided: text to actions (workflow-engine contract §11).
//!
//! Layer 1 finds the value, layer 2 reads it for one of the two drivers. JSON is never searched for
//! inside prose: what a reply only quotes is never run.

mod literal;

use std::sync::Arc;

use serde_json::{Map, Value};

/// Who asked the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// A turn of a task.
    Task,
    /// A sub-agent's loop.
    Sub,
}

/// One action, by the model or by code.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The action; empty means waiting.
    pub action_name: String,
    /// Parameters by name.
    pub parameters: Map<String, Value>,
    /// Why; one text for all actions of a reply.
    pub reasoning: Arc<str>,
}

impl Decision {
    /// An action with its parameters and its reason.
    pub fn new(
        action_name: impl Into<String>,
        parameters: Map<String, Value>,
        reasoning: impl Into<Arc<str>>,
    ) -> Self {
        Self { action_name: action_name.into(), parameters, reasoning: reasoning.into() }
    }
}

/// Why a reply is no decision. The code is what the model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionError {
    /// Nothing but blanks.
    Empty,
    /// Neither JSON nor a literal.
    NotJson,
    /// `null`.
    Null,
    /// A list, a number or a text.
    NotObject,
    /// No `actions`.
    MissingActions,
    /// `actions` is no list (task).
    ActionsNotList,
    /// `actions` names no action (task).
    ActionsEmpty,
    /// `actions` is missing, no list, or empty (sub-agent).
    ActionsNotNonemptyList,
    /// An item has no `action_name` (sub-agent).
    ItemMissingActionName,
    /// This key stands where `actions` should.
    WrongKey(&'static str),
    /// This key stands in an item where `action_name` or `parameters` should.
    ItemWrongKey(&'static str),
}

impl std::fmt::Display for DecisionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::NotJson => "not_json",
            Self::Null => "null",
            Self::NotObject => "not_object",
            Self::MissingActions => "missing_actions",
            Self::ActionsNotList => "actions_not_list",
            Self::ActionsEmpty => "actions_empty",
            Self::ActionsNotNonemptyList => "actions_not_nonempty_list",
            Self::ItemMissingActionName => "item_missing_action_name",
            Self::WrongKey(key) => return write!(f, "wrong_key_{key}"),
            Self::ItemWrongKey(key) => return write!(f, "item_wrong_key_{key}"),
        })
    }
}

impl std::error::Error for DecisionError {}

/// Reads the reply of a model for a driver; at least one decision, in the order of the reply.
///
/// # Errors
/// One of [`DecisionError`].
pub fn parse(raw: &str, driver: Driver) -> Result<Vec<Decision>, DecisionError> {
    let Value::Object(top) = value(raw)? else { return Err(DecisionError::NotObject) };
    match driver {
        Driver::Task => task_decisions(&top),
        Driver::Sub => sub_decisions(&top),
    }
}

/// Layer 1: the value of a reply.
fn value(raw: &str) -> Result<Value, DecisionError> {
    let text = raw.trim();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    if text.is_empty() {
        return Err(DecisionError::Empty);
    }
    let text = text.replace("\r\n", "\n");
    let text = if text.starts_with("```") { unfenced(&text) } else { &text };
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) if literal::is_plain(&value) => value,
        _ => literal::parse(text).ok_or(DecisionError::NotJson)?,
    };
    if value.is_null() { Err(DecisionError::Null) } else { Ok(value) }
}

/// What stands inside the fence a reply begins with; what stands behind its last closing fence is dropped.
fn unfenced(text: &str) -> &str {
    let opened = text.trim_start_matches('`');
    let word_end = opened
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')))
        .unwrap_or(opened.len());
    let after_word = &opened[word_end..];
    // The value may begin on the line of the fence; anything else there is about the fence.
    let body = match after_word.split_once('\n') {
        Some((info, rest)) if !info.trim_start().starts_with(['{', '[', '(']) => rest,
        _ => after_word,
    };
    let mut cut = None;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        let mark = line.trim();
        if mark.len() >= 3 && mark.bytes().all(|byte| byte == b'`') {
            cut = Some(at);
        }
        at += line.len();
    }
    match cut {
        Some(end) => body[..end].trim(),
        None => body.trim().trim_end_matches("```").trim(),
    }
}

/// Layer 2 for a task.
fn task_decisions(top: &Map<String, Value>) -> Result<Vec<Decision>, DecisionError> {
    let Some(actions) = top.get("actions") else {
        let tell_tale = ["response", "action", "args", "message"]
            .into_iter()
            .find(|key| top.contains_key(*key));
        return Err(tell_tale.map_or(DecisionError::MissingActions, DecisionError::WrongKey));
    };
    let actions = actions.as_array().ok_or(DecisionError::ActionsNotList)?;
    let mut decisions = Vec::new();
    let reasoning = reasoning(top);
    for item in actions.iter().filter_map(Value::as_object) {
        for (wrong, right) in
            [("action", "action_name"), ("args", "parameters"), ("name", "action_name")]
        {
            if item.contains_key(wrong) && !item.contains_key(right) {
                return Err(DecisionError::ItemWrongKey(wrong));
            }
        }
        if let Some(name) =
            item.get("action_name").and_then(Value::as_str).filter(|name| !name.is_empty())
        {
            decisions.push(decision(name, item, &reasoning));
        }
    }
    if decisions.is_empty() { Err(DecisionError::ActionsEmpty) } else { Ok(decisions) }
}

/// Layer 2 for a sub-agent: stricter with lists, and a single action may stand alone.
fn sub_decisions(top: &Map<String, Value>) -> Result<Vec<Decision>, DecisionError> {
    if !top.contains_key("actions")
        && let Some(name) = top.get("action_name").and_then(Value::as_str)
    {
        return Ok(vec![decision(name, top, &reasoning(top))]);
    }
    let actions =
        top.get("actions").and_then(Value::as_array).filter(|actions| !actions.is_empty());
    let actions = actions.ok_or(DecisionError::ActionsNotNonemptyList)?;
    let reasoning = reasoning(top);
    let read = |item: &Value| {
        let item = item.as_object().ok_or(DecisionError::ItemMissingActionName)?;
        let name = item.get("action_name").and_then(Value::as_str);
        let name = name.ok_or(DecisionError::ItemMissingActionName)?;
        Ok(decision(name, item, &reasoning))
    };
    actions.iter().map(read).collect()
}

fn reasoning(top: &Map<String, Value>) -> Arc<str> {
    top.get("reasoning").and_then(Value::as_str).unwrap_or_default().into()
}

fn decision(name: &str, item: &Map<String, Value>, reasoning: &Arc<str>) -> Decision {
    let parameters = item.get("parameters").and_then(Value::as_object).cloned().unwrap_or_default();
    Decision::new(name, parameters, Arc::clone(reasoning))
}

#[cfg(test)]
mod tests;
