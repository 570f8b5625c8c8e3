//! [`Row`]: one thing that waits for a person.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::age;

/// What is wanted of the person. In the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An answer; somebody waits for it.
    Question,
    /// A verdict on a work product.
    Review,
    /// To be read.
    Message,
    /// To be known: a task failed.
    Failure,
    /// To be known: a task is done.
    Completion,
}

impl Kind {
    /// The word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Review => "review",
            Self::Message => "message",
            Self::Failure => "failure",
            Self::Completion => "completion",
        }
    }

    /// Whether it goes away by an answer; the others are dismissed.
    pub(super) fn is_answered(self) -> bool {
        matches!(self, Self::Question | Self::Review)
    }
}

/// Where in a workflow run a request was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) run: String,
    pub(super) phase: String,
    pub(super) step: String,
}

/// One thing that waits for a person. Texts are as they were written, by whomever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// What `answer` and `dismiss` are told.
    pub(super) id: String,
    pub(super) project: Option<String>,
    pub(super) task: Option<String>,
    pub(super) number: Option<String>,
    pub(super) title: Option<String>,
    /// Who asks or tells.
    pub(super) agent: Option<String>,
    /// What an answer does: the effect of a card, the type of a run's request.
    pub(super) effect: Option<String>,
    pub(super) body: String,
    pub(super) created_at: String,
    /// Present for requests of workflow runs alone.
    pub(super) place: Option<Place>,
}

impl Row {
    /// Questions first; of one kind, whoever waits longest. Rows of one moment keep the order they came in, which is
    /// that of their file: a clock that was set back moves a row, but never makes two lists of one state differ.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        // One source writes milliseconds and the other does not: without the `Z`, `…:07` is before `…:07.250`.
        let moment = |row: &Self| row.created_at.trim_end_matches('Z').to_owned();
        self.kind.cmp(&other.kind).then_with(|| moment(self).cmp(&moment(other)))
    }

    /// Task or run, in one text.
    pub(super) fn about(&self) -> String {
        if let Some(Place { run, phase, step }) = &self.place {
            let run = run.rsplit('/').next().unwrap_or_default();
            return format!("run {run} {phase}:{step}");
        }
        let number = self.number.as_ref().map(|number| format!("#{number}"));
        let title =
            self.title.clone().or_else(|| self.task.clone()).filter(|title| !title.is_empty());
        [number, title].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// For programs.
    pub(super) fn to_json(&self, now: Timestamp) -> Value {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("id", json!(self.id));
        put("kind", json!(self.kind.word()));
        put("effect", json!(self.effect));
        put("project", json!(self.project));
        put("taskId", json!(self.task));
        put(
            "taskNumber",
            self.number.as_deref().and_then(|number| number.parse().ok()).unwrap_or(Value::Null),
        );
        put("taskTitle", json!(self.title));
        put("agent", json!(self.agent));
        put("body", json!(self.body));
        put("createdAt", json!(self.created_at));
        put("ageSeconds", json!(age::seconds(&self.created_at, now)));
        if let Some(Place { run, phase, step }) = &self.place {
            put("run", json!(run));
            put("phase", json!(phase));
            put("step", json!(step));
        }
        Value::Object(members)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn row(kind: Kind, id: &str, created_at: &str) -> Row {
        Row {
            kind,
            id: id.to_owned(),
            project: Some("atlas".to_owned()),
            task: Some("task_1".to_owned()),
            number: Some("1".to_owned()),
            title: Some("Sales report".to_owned()),
            agent: Some("analyst".to_owned()),
            effect: Some("reply".to_owned()),
            body: "Which region?".to_owned(),
            created_at: created_at.to_owned(),
            place: None,
        }
    }

    #[test]
    fn questions_come_first_and_the_oldest_before_the_others() {
        let mut rows = [
            row(Kind::Completion, "e", "2026-03-01T00:00:00.000Z"),
            row(Kind::Question, "b", "2026-03-02T00:00:07.250Z"),
            row(Kind::Message, "d", "2026-03-01T00:00:00.000Z"),
            row(Kind::Question, "a", "2026-03-02T00:00:07Z"),
            row(Kind::Question, "b2", "2026-03-02T00:00:07.250Z"),
            row(Kind::Review, "c", "2026-03-01T00:00:00.000Z"),
            row(Kind::Question, "0", ""),
        ];
        rows.sort_by(Row::order);
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["0", "a", "b", "b2", "c", "d", "e"]);
    }

    #[test]
    fn a_row_says_what_it_is_about() {
        let task = row(Kind::Question, "a", "");
        assert_eq!(task.about(), "#1 Sales report");
        assert_eq!(Row { number: None, title: None, ..task.clone() }.about(), "task_1");
        assert_eq!(Row { number: None, title: None, task: None, ..task.clone() }.about(), "");
        let place = Place {
            run: "acme/web/0f0e".to_owned(),
            phase: "build".to_owned(),
            step: "x".to_owned(),
        };
        assert_eq!(Row { place: Some(place), ..task }.about(), "run 0f0e build:x");
    }
}
