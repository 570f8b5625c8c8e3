//! [`Form`]: which answers fit a question, and [`Answer`], one that does. Pure.
//!
//! The effect of a card says which actions there are: `reply` for a reply, `approve` and `reject` for an approval gate,
//! `accept` and `request_changes` for a review. A widget may list more: `options` (or `choices`), `actions` and `fields`,
//! directly or under `props`. Whatever else a widget holds is for pages, and not looked at.

use json_text::{Json, Kind, Specials, quote};

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// What is stored.
    pub(super) value: String,
    /// What people read, if that is something else.
    pub(super) label: Option<String>,
}

/// A named value that the answer's parameters may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) options: Vec<Choice>,
}

/// Which answers fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// What can be done; any word if there are none.
    pub(super) actions: Vec<Choice>,
    /// What a reply must be one of; any text if there are none.
    pub(super) options: Vec<Choice>,
    /// What the parameters may hold; anything if there are none.
    pub(super) fields: Vec<Field>,
    /// Whether the answer is a text, as opposed to a decision.
    pub(super) is_reply: bool,
}

/// What the person typed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given<'a> {
    pub(super) action: Option<&'a str>,
    pub(super) text: Option<&'a str>,
    pub(super) params: Option<&'a str>,
}

/// An answer that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) action: String,
    pub(super) text: Option<String>,
    /// A JSON object, as it was given.
    pub(super) params: Option<String>,
}

impl Form {
    /// Of a card with this effect and payload.
    pub(super) fn of_card(effect: &str, payload: Option<Json<'_>>) -> Self {
        let widget = payload.and_then(|payload| payload.get("widget"));
        let props = widget.and_then(|widget| widget.get("props"));
        let listed = |names: &[&str]| -> Vec<Json<'_>> {
            let places = [widget, props];
            let mut found = places
                .into_iter()
                .flatten()
                .flat_map(|place| names.iter().filter_map(move |name| place.get(name)));
            found
                .find(|list| list.kind() == Kind::Array)
                .map(|list| list.items().collect())
                .unwrap_or_default()
        };
        let choices = |names: &[&str]| -> Vec<Choice> {
            listed(names).into_iter().filter_map(Choice::of).collect()
        };
        let words = |words: &[&str]| {
            words.iter().map(|word| Choice { value: (*word).to_owned(), label: None }).collect()
        };
        let (own, options) = (choices(&["actions"]), choices(&["options", "choices"]));
        let fields = listed(&["fields"]).into_iter().filter_map(Field::of).collect();
        let decision = match effect {
            "approval_gate" => Some(words(&["approve", "reject"])),
            "review_work_product" => Some(words(&["accept", "request_changes"])),
            _ => None,
        };
        match decision {
            Some(usual) => {
                let actions = [own, options, usual]
                    .into_iter()
                    .find(|list| !list.is_empty())
                    .unwrap_or_default();
                Self { actions, options: Vec::new(), fields, is_reply: false }
            }
            None => {
                // An effect of another program's: what it makes of the action is not known here.
                let usual = if effect == "reply" { words(&["reply"]) } else { Vec::new() };
                let actions = if own.is_empty() { usual } else { own };
                Self { actions, options, fields, is_reply: true }
            }
        }
    }

    /// Whether, and as what, the answer fits. The error says what would.
    pub(super) fn check(&self, given: &Given<'_>) -> Result<Answer, String> {
        let text = given.text.filter(|text| !text.trim().is_empty());
        let action = given.action.map(str::trim).filter(|action| !action.is_empty());
        let params = given.params.map(|params| self.params(params)).transpose()?;
        let (action, text) = match action {
            Some(action) => self.acted(action, text)?,
            None => self.said(text)?,
        };
        let text = if self.is_reply && action == "reply" {
            self.reply(text, params.is_some())?
        } else {
            text
        };
        Ok(Answer { action, text, params })
    }

    /// The text of a reply, as it is stored.
    fn reply(&self, text: Option<String>, has_params: bool) -> Result<Option<String>, String> {
        if !has_params && let Some(field) = self.fields.iter().find(|field| field.required) {
            return Err(format!("the field `{}` is required: give it in `--params`", field.name));
        }
        match text {
            Some(text) if !self.options.is_empty() => match pick(&self.options, &text) {
                Some(option) => Ok(Some(option.value.clone())),
                None => Err(format!("`{text}` is not among the options: {}", names(&self.options))),
            },
            None if !self.options.is_empty() && (!has_params || self.fields.is_empty()) => {
                Err(format!("choose one of the options: {}", names(&self.options)))
            }
            None if !has_params => {
                Err("the answer is empty: give a text, or `--params`".to_owned())
            }
            text => Ok(text),
        }
    }

    /// With a named action.
    fn acted(&self, action: &str, text: Option<&str>) -> Result<(String, Option<String>), String> {
        let text = text.map(str::to_owned);
        if let Some(known) = pick(&self.actions, action) {
            return Ok((known.value.clone(), text));
        }
        if let Some(option) = pick(&self.options, action).filter(|_| self.is_reply) {
            return match text {
                None => Ok(("reply".to_owned(), Some(option.value.clone()))),
                Some(_) => {
                    Err(format!("`{}` is the whole answer: leave out the text", option.value))
                }
            };
        }
        if self.actions.is_empty() {
            return Ok((action.to_owned(), text));
        }
        Err(format!("there is no action `{action}` here: use {}", names(&self.actions)))
    }

    /// Without one: a reply replies, and a decision may be the text itself.
    fn said(&self, text: Option<&str>) -> Result<(String, Option<String>), String> {
        if self.is_reply && (self.actions.is_empty() || pick(&self.actions, "reply").is_some()) {
            return Ok(("reply".to_owned(), text.map(str::to_owned)));
        }
        match text.and_then(|text| pick(&self.actions, text)) {
            Some(action) => Ok((action.value.clone(), None)),
            None => Err(format!("say what you decide with `--action`: {}", names(&self.actions))),
        }
    }

    fn params(&self, text: &str) -> Result<String, String> {
        let json = Json::parse(text.trim(), Specials::Refuse)
            .map_err(|error| format!("`--params` is not JSON: {error}"))?;
        if !json.is_object() {
            return Err("`--params` must be a JSON object".to_owned());
        }
        if self.fields.is_empty() {
            return Ok(json.text().to_owned());
        }
        for (name, value) in json.fields() {
            let Some(field) = self.fields.iter().find(|field| field.name == name) else {
                let known: Vec<&str> =
                    self.fields.iter().map(|field| field.name.as_str()).collect();
                return Err(format!(
                    "`--params`: there is no field `{name}`, only {}",
                    quoted(&known)
                ));
            };
            let unfit = |word: &Json<'_>| {
                !field.options.is_empty() && !field.options.iter().any(|option| option.is(word))
            };
            let chosen: Vec<Json<'_>> =
                if value.kind() == Kind::Array { value.items().collect() } else { vec![value] };
            if let Some(unfit) = chosen.iter().find(|word| unfit(word)) {
                return Err(format!(
                    "`--params`: `{name}` cannot be {}: {}",
                    unfit.text(),
                    names(&field.options)
                ));
            }
        }
        let empty = |field: &&Field| {
            json.get(&field.name).is_none_or(|value| value.is_null() || value.eq_str(""))
        };
        match self.fields.iter().filter(|field| field.required).find(empty) {
            Some(field) => Err(format!("`--params`: the field `{}` is required", field.name)),
            None => Ok(json.text().to_owned()),
        }
    }
}

impl Answer {
    /// As it is stored: `{"action", "text"?, "params"?}`.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::from("{\"action\":");
        quote(&self.action, &mut out);
        if let Some(text) = &self.text {
            out.push_str(",\"text\":");
            quote(text, &mut out);
        }
        if let Some(params) = &self.params {
            out.push_str(",\"params\":");
            out.push_str(params);
        }
        out.push('}');
        out
    }
}

impl Choice {
    fn of(json: Json<'_>) -> Option<Self> {
        let word = |json: Json<'_>| match json.kind() {
            Kind::String => json.as_str().map(|text| text.into_owned()),
            Kind::Number | Kind::Bool => Some(json.text().to_owned()),
            Kind::Null | Kind::Array | Kind::Object => None,
        };
        let label = ["label", "title"].iter().find_map(|name| json.get(name).and_then(word));
        let named =
            ["value", "id", "action", "name"].iter().find_map(|name| json.get(name).and_then(word));
        let value = word(json)
            .or(named)
            .or_else(|| label.clone())
            .filter(|value| !value.trim().is_empty())?;
        Some(Self { label: label.filter(|label| *label != value), value })
    }

    fn is(&self, json: &Json<'_>) -> bool {
        json.eq_str(&self.value) || json.text() == self.value
    }
}

impl Field {
    fn of(json: Json<'_>) -> Option<Self> {
        let name = json.get("name").or_else(|| json.get("id"))?.as_str()?.into_owned();
        let options =
            json.get("options").into_iter().flat_map(Json::items).filter_map(Choice::of).collect();
        Some(Self {
            name,
            required: json.get("required").and_then(Json::as_bool) == Some(true),
            options,
        })
    }
}

/// The choice that a word means: its value, its label, either of them written differently, or its number.
pub(super) fn pick<'a>(choices: &'a [Choice], word: &str) -> Option<&'a Choice> {
    let folded = |text: &str| text.trim().to_lowercase().replace(['-', ' '], "_");
    let labelled =
        |choice: &Choice, is: &dyn Fn(&str) -> bool| choice.label.as_deref().is_some_and(is);
    let exact = |text: &str| text == word;
    let alike = |text: &str| folded(text) == folded(word);
    let number =
        || word.trim().parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    choices
        .iter()
        .find(|choice| exact(&choice.value))
        .or_else(|| choices.iter().find(|choice| labelled(choice, &exact)))
        .or_else(|| choices.iter().find(|choice| alike(&choice.value) || labelled(choice, &alike)))
        .or_else(number)
}

/// At most a handful, so that a message stays readable.
fn names(choices: &[Choice]) -> String {
    quoted(&choices.iter().map(|choice| choice.value.as_str()).collect::<Vec<_>>())
}

fn quoted(words: &[&str]) -> String {
    const SHOWN: usize = 20;
    let mut text =
        words.iter().take(SHOWN).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    if words.len() > SHOWN {
        text.push_str(&format!(" and {} more", words.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests;
