//! [`Cards`]: interaction cards, messages and outcomes of tasks, through `feedback-management`.

use std::rc::Rc;

use jiff::Timestamp;
use json_text::{Json, Layout, Specials, quote};

use super::age;
use super::door::Door;
use super::form::{Choice, Form, Given};
use super::hint::{Hints, Word, remark};
use super::row::{Kind, Row};
use super::source::{Item, Open, Outcome, Past, Source};
use crate::error::HostError;

const PROJECT: &str = "feedback-management";

/// Interaction cards, messages and outcomes of tasks.
pub(super) struct Cards {
    door: Rc<dyn Door>,
    hints: Hints,
}

impl Cards {
    pub(super) fn new(door: Rc<dyn Door>, hints: Hints) -> Self {
        Self { door, hints }
    }

    fn call(&self, op: &str, params: &[(&str, &str)]) -> Result<String, HostError> {
        self.door.call(PROJECT, op, params)
    }

    /// The card, in any state.
    fn card(&self, id: &str) -> Result<Option<String>, HostError> {
        let card = self.call("get_card", &[("id", id)])?;
        Ok((!is_refused(Json::trusted(&card), "not found")).then_some(card))
    }

    /// What the inbox shows under this id, as it does.
    fn shown(&self, id: &str) -> Result<Option<(Row, String)>, HostError> {
        let view = self.call("inbox_view", &[])?;
        let items = Json::trusted(&view).get("items");
        let found = items
            .into_iter()
            .flat_map(Json::items)
            .find(|item| item.get("id").is_some_and(|it| it.eq_str(id)));
        Ok(found.map(|item| (row(item), item.text().to_owned())))
    }

    fn history(&self, card: Json<'_>) -> Result<Vec<Past>, HostError> {
        let task = text(card, "taskId").unwrap_or_default();
        if task.is_empty() {
            return Ok(Vec::new());
        }
        let cards = self.call("list_cards", &[("task", &task)])?;
        let id = card.get("id").map(Json::text);
        let others = Json::trusted(&cards)
            .items()
            .filter(|other| other.get("id").map(Json::text) != id)
            .map(past)
            .collect();
        Ok(others)
    }

    fn card_item(&self, card: &str, row: Option<&Row>) -> Result<Item, HostError> {
        let json = Json::trusted(card);
        let word = |name: &str| text(json, name).unwrap_or_default();
        let (id, status, effect) = (word("id"), word("status"), word("effect"));
        let form = Form::of_card(&effect, json.get("payload"));
        let pending = status == "pending";
        let state = if pending {
            format!("waits {}", age::shown(&word("createdAt"), Timestamp::now()))
        } else {
            outcome(json)
        };
        let title = row
            .map_or_else(|| word("taskId"), |row| format!("{} ({})", row.about(), word("taskId")));
        let run = word("sourceRunId");
        let by = if run.is_empty() {
            word("createdBy")
        } else {
            format!("{} in {run}", word("createdBy"))
        };
        let facts = vec![
            ("card", id.clone()),
            ("state", state),
            ("project", word("project")),
            ("task", title),
            ("asked by", by),
            ("asked at", word("createdAt")),
            ("effect", effect),
        ];
        let mut texts = vec![("asks", word("summary"))];
        texts.push(("payload", json.get("payload").map(pretty).unwrap_or_default()));
        if let Some(result) = json.get("result").filter(|result| !result.is_null()) {
            texts.push(("result", pretty(result)));
        }
        let history = self.history(json)?;
        let hints = if pending { ways(&self.hints, &id, &form) } else { Vec::new() };
        Ok(Item { facts, texts, hints, history, json: card.to_owned() })
    }

    /// Who answered, when and with what.
    fn faster(&self, id: &str) -> Result<Option<Outcome>, HostError> {
        let Some(card) = self.card(id)? else { return Ok(None) };
        let card = Json::trusted(&card);
        let mut winner = String::from("{");
        for (at, (name, field)) in
            [("by", "resolvedBy"), ("at", "resolvedAt"), ("status", "status"), ("result", "result")]
                .into_iter()
                .enumerate()
        {
            winner.push_str(if at > 0 { "," } else { "" });
            quote(name, &mut winner);
            winner.push(':');
            winner.push_str(card.get(field).map_or("null", Json::text));
        }
        winner.push('}');
        let at = text(card, "resolvedAt").map(|at| format!(" at {at}")).unwrap_or_default();
        let said = format!("`{id}` is no longer open: {}{at}", outcome(card));
        Ok(Some(Outcome::Faster { said, winner }))
    }
}

impl Source for Cards {
    fn open(&self, project: &str) -> Result<Open, HostError> {
        let view = self.call("inbox_view", &[("project", project)])?;
        let items = Json::trusted(&view).get("items");
        // What is damaged reads as empty, which a person would take for an inbox with nothing in it.
        let notes = self.door.damaged();
        Ok(Open {
            rows: items.into_iter().flat_map(Json::items).map(row).collect(),
            unread: !notes.is_empty(),
            notes,
        })
    }

    fn item(&self, id: &str) -> Result<Option<Item>, HostError> {
        let shown = self.shown(id)?;
        if let Some(card) = self.card(id)? {
            return self.card_item(&card, shown.as_ref().map(|(row, _)| row)).map(Some);
        }
        Ok(shown.map(|(row, json)| told_item(&self.hints, &row, &json)))
    }

    fn answer(&self, id: &str, given: &Given<'_>, by: &str) -> Result<Option<Outcome>, HostError> {
        let Some(card) = self.card(id)? else {
            return Ok(self.shown(id)?.map(|(row, _)| {
                let word = row.kind.word();
                let hint = self.hints.line("dismiss", &[Word::Text(id)]);
                Outcome::Misfit(format!("`{id}` is a {word}, which takes no answer: `{hint}`"))
            }));
        };
        let card = Json::trusted(&card);
        if !card.get("status").is_some_and(|status| status.eq_str("pending")) {
            return self.faster(id);
        }
        let form = Form::of_card(&text(card, "effect").unwrap_or_default(), card.get("payload"));
        let answer = match form.check(given) {
            Ok(answer) => answer.to_json(),
            Err(fault) => return Ok(Some(Outcome::Misfit(fault))),
        };
        let params =
            [("id", id), ("status", "answered"), ("result", answer.as_str()), ("resolved_by", by)];
        let reply = self.call("resolve_card", &params)?;
        let resolved = Json::trusted(&reply);
        if is_refused(resolved, "already resolved") {
            return self.faster(id);
        }
        if is_refused(resolved, "not found") {
            return Ok(None);
        }
        Ok(Some(Outcome::Done { said: format!("`{id}` is {}", outcome(resolved)), json: reply }))
    }

    fn dismiss(&self, id: &str) -> Result<Option<Outcome>, HostError> {
        if let Some(card) = self.card(id)? {
            let pending =
                Json::trusted(&card).get("status").is_some_and(|status| status.eq_str("pending"));
            if !pending {
                return self.faster(id);
            }
            let why = "somebody waits for its answer, so it cannot be dismissed";
            let hint = self.hints.line("answer", &[Word::Text(id), Word::Blank("…")]);
            return Ok(Some(Outcome::Misfit(format!("`{id}` is a question, and {why}: `{hint}`"))));
        }
        let known = self.shown(id)?.is_some()
            || self.call("is_feedback_key_dismissed", &[("id", id)])? == "true";
        if !known {
            return Ok(None);
        }
        let json = self.call("acknowledge_feedback", &[("key", id)])?;
        let already =
            Json::trusted(&json).get("alreadyAcked").and_then(Json::as_bool) == Some(true);
        let said = if already {
            format!("`{id}` was dismissed before")
        } else {
            format!("`{id}` is dismissed")
        };
        Ok(Some(Outcome::Done { said, json }))
    }
}

/// An item of `inbox_view`.
fn row(item: Json<'_>) -> Row {
    let card = item.get("card").filter(|card| card.is_object());
    let kind = match text(item, "type").as_deref() {
        Some("question") => Kind::Question,
        Some("completion") => Kind::Completion,
        Some("failure") => Kind::Failure,
        // A message that is a card is a review.
        _ if card.is_some() => Kind::Review,
        _ => Kind::Message,
    };
    Row {
        kind,
        id: text(item, "id").unwrap_or_default(),
        project: text(item, "project"),
        task: text(item, "taskId"),
        number: item
            .get("taskNumber")
            .filter(|number| number.kind() == json_text::Kind::Number)
            .map(|number| number.text().to_owned()),
        title: text(item, "taskTitle"),
        agent: text(item, "agentSlug"),
        effect: card.and_then(|card| text(card, "effect")),
        body: text(item, "body").unwrap_or_default(),
        created_at: text(item, "createdAt").unwrap_or_default(),
        place: None,
    }
}

/// A message or an outcome.
fn told_item(hints: &Hints, row: &Row, json: &str) -> Item {
    let facts = vec![
        (row.kind.word(), row.id.clone()),
        ("state", format!("waits {}", age::shown(&row.created_at, Timestamp::now()))),
        ("project", row.project.clone().unwrap_or_default()),
        ("task", format!("{} ({})", row.about(), row.task.as_deref().unwrap_or_default())),
        ("from", row.agent.clone().unwrap_or_default()),
        ("at", row.created_at.clone()),
    ];
    let mut texts = vec![("says", row.body.clone())];
    if let Some(widget) = Json::trusted(json).get("widget").filter(|widget| !widget.is_null()) {
        texts.push(("widget", pretty(widget)));
    }
    let hints = vec![hints.line("dismiss", &[Word::Text(&row.id)])];
    Item { facts, texts, hints, history: Vec::new(), json: json.to_owned() }
}

fn past(card: Json<'_>) -> Past {
    let word = |name: &str| text(card, name).unwrap_or_default();
    Past {
        id: word("id"),
        created_at: word("createdAt"),
        outcome: outcome(card),
        body: word("summary"),
    }
}

/// What became of a card, in one line.
fn outcome(card: Json<'_>) -> String {
    let status = text(card, "status").unwrap_or_default();
    let mut said = match status.as_str() {
        "pending" => return "open".to_owned(),
        "superseded" => return "superseded by a later question".to_owned(),
        _ => status,
    };
    if let Some(by) = text(card, "resolvedBy") {
        said.push_str(&format!(" by {by}"));
    }
    if let Some(result) = card.get("result").filter(|result| !result.is_null()) {
        said.push_str(&format!(" with {}", result_words(result)));
    }
    said
}

/// A result: in its own words if it has the shape that [`super::form::Answer`] stores, else as JSON.
fn result_words(result: Json<'_>) -> String {
    let ours = ["action", "text", "params"];
    if !result.is_object() || !result.fields().all(|(name, _)| ours.contains(&&*name)) {
        return compact(result);
    }
    let quoted =
        |json: Json<'_>| json.as_str().map_or_else(|| compact(json), |text| format!("“{text}”"));
    let action = text(result, "action").filter(|action| action != "reply");
    let said = result.get("text").map(quoted);
    let params = result.get("params").map(compact);
    let parts: Vec<String> = [action, said, params].into_iter().flatten().collect();
    if parts.is_empty() { compact(result) } else { parts.join(" ") }
}

/// How to answer.
fn ways(hints: &Hints, id: &str, form: &Form) -> Vec<String> {
    const SHOWN: usize = 50;
    let line = |word: Word<'_>| hints.line("answer", &[Word::Text(id), word]);
    let mut ways = Vec::new();
    let replies = form.is_reply
        && (form.actions.is_empty() || form.actions.iter().any(|action| action.value == "reply"));
    if replies && form.options.is_empty() && form.fields.is_empty() {
        ways.push(line(Word::Blank("'your text'")));
    }
    let choices = if replies { &form.options } else { &form.actions };
    for (number, Choice { value, label }) in (1..).zip(choices.iter().take(SHOWN)) {
        let word = if replies { Word::Text(value) } else { Word::Option("--action", value) };
        ways.push(line(word) + &remark(number, label.as_deref()));
    }
    if choices.len() > SHOWN {
        ways.push(format!("… and {} more, see the payload", choices.len() - SHOWN));
    }
    if !form.fields.is_empty() {
        let name = |field: &super::form::Field| {
            let mut name = String::new();
            quote(&field.name, &mut name);
            format!("{name}: {}", if field.required { "…" } else { "… or nothing" })
        };
        let fields: Vec<String> = form.fields.iter().map(name).collect();
        ways.push(line(Word::Option("--params", &format!("{{{}}}", fields.join(", ")))));
    }
    ways
}

/// The text of a member; `None` if it is no text.
pub(super) fn text(json: Json<'_>, name: &str) -> Option<String> {
    json.get(name)?.as_str().map(|text| text.into_owned())
}

/// `{"ok": false, "error": word}`, which a stored record could only be without an id.
fn is_refused(json: Json<'_>, word: &str) -> bool {
    json.get("id").is_none()
        && json.get("ok").and_then(Json::as_bool) == Some(false)
        && json.get("error").is_some_and(|error| error.eq_str(word))
}

pub(super) fn pretty(json: Json<'_>) -> String {
    rendered(json, Layout::Pretty { level: 0 })
}

fn compact(json: Json<'_>) -> String {
    rendered(json, Layout::Line)
}

fn rendered(json: Json<'_>, layout: Layout) -> String {
    let mut out = String::new();
    match json_text::render(json.text(), layout, Specials::Accept, &mut out) {
        Ok(()) => out,
        // Deeper than any layout goes: shown as it stands.
        Err(_) => json.text().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_told_in_words() {
        for (card, want) in [
            (r#"{"status": "pending"}"#, "open"),
            (r#"{"status": "superseded", "resolvedBy": null}"#, "superseded by a later question"),
            (
                r#"{"status": "cancelled", "resolvedBy": "user", "result": null}"#,
                "cancelled by user",
            ),
            (
                r#"{"status": "answered", "resolvedBy": "ann", "result": {"action": "reply", "text": "EMEA"}}"#,
                "answered by ann with “EMEA”",
            ),
            (
                r#"{"status": "answered", "resolvedBy": "ann", "result": {"action": "reject", "text": "no", "params": {"a": [1]}}}"#,
                "answered by ann with reject “no” {\"a\": [1]}",
            ),
            (
                r#"{"status": "answered", "resolvedBy": "ann", "result": {"action": "reply"}}"#,
                "answered by ann with {\"action\": \"reply\"}",
            ),
            (
                r#"{"status": "answered", "resolvedBy": null, "result": {"other": 1}}"#,
                "answered with {\"other\": 1}",
            ),
            (r#"{"status": "answered", "result": "yes"}"#, "answered with \"yes\""),
        ] {
            assert_eq!(outcome(Json::trusted(card)), want);
        }
    }

    #[test]
    fn hints_can_be_copied_into_a_shell() {
        let of = |effect: &str, payload: &str| {
            let form = Form::of_card(effect, Some(Json::trusted(payload)));
            ways(&Hints::default(), "card_1", &form)
        };
        assert_eq!(of("reply", "{}"), ["udf-host inbox answer card_1 'your text'"]);
        assert_eq!(
            of("approval_gate", "{}"),
            [
                "udf-host inbox answer card_1 --action approve      # 1.",
                "udf-host inbox answer card_1 --action reject      # 2."
            ]
        );
        assert_eq!(
            of("reply", r#"{"widget": {"options": [{"value": "it's; rm -rf", "label": "So"}]}}"#),
            [r"udf-host inbox answer card_1 'it'\''s; rm -rf'      # 1. So"]
        );
        assert_eq!(
            of(
                "reply",
                r#"{"widget": {"fields": [{"name": "a", "required": true}, {"name": "b"}]}}"#
            ),
            [r#"udf-host inbox answer card_1 --params '{"a": …, "b": … or nothing}'"#]
        );
        assert_eq!(
            of("reply", r#"{"widget": {"options": ["--help"]}}"#),
            ["udf-host inbox answer -- card_1 '--help'      # 1."]
        );
    }

    #[test]
    fn a_stored_record_is_never_taken_for_a_refusal() {
        for (json, want) in [
            (r#"{"ok": false, "error": "not found"}"#, true),
            (r#"{"ok": false, "error": "other"}"#, false),
            (r#"{"id": "c", "ok": false, "error": "not found"}"#, false),
            (r#"{"ok": true, "error": "not found"}"#, false),
            ("null", false),
        ] {
            assert_eq!(is_refused(Json::trusted(json), "not found"), want, "{json}");
        }
    }
}
