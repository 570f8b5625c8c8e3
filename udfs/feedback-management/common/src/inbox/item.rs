use sdk::prelude::*;

/// One row of the feed and what it is ordered by. The row is written as text at once: feeds are long,
/// and most of a row is copied from records that are text already.
pub(super) struct Item {
    pub(super) stamp: String,
    json: String,
}

impl ToJson for Item {
    fn write_json(&self, out: &mut String) {
        out.push_str(&self.json);
    }
}

/// What differs between the kinds of rows; the rest is null. Every value is JSON text.
#[derive(Default)]
struct Cells<'a> {
    id: Option<JsonText>,
    project: Option<JsonRef<'a>>,
    kind: &'static str,
    task_id: Option<JsonRef<'a>>,
    agent: Option<JsonRef<'a>>,
    body: Option<JsonText>,
    widget: Option<JsonRef<'a>>,
    work_product: Option<JsonRef<'a>>,
    created_at: Option<JsonText>,
    task: Option<&'a Record>,
    card: Option<&'a Record>,
}

impl Item {
    /// A question, or a work product to review.
    pub(super) fn card(card: &Record, task: Option<&Record>, review: bool) -> Self {
        let payload = card.get("payload");
        let of_payload = |field| payload.and_then(|payload| payload.get(field));
        let work_product = of_payload("effectArgs").and_then(|args| args.get("workProductId"));
        Cells {
            id: card.get("id").map(JsonText::from),
            project: card.get("project"),
            kind: if review { "message" } else { "question" },
            task_id: card.get("taskId"),
            agent: card.get("createdBy"),
            body: Some(or_else(
                card.get("summary"),
                if review { "(review)" } else { "(question)" },
            )),
            widget: of_payload("widget"),
            work_product: work_product.filter(|_| review),
            created_at: card.get("createdAt").map(JsonText::from),
            task,
            card: Some(card),
        }
        .into_item()
    }

    /// A comment to the human.
    pub(super) fn message(comment: &Record, task: Option<&Record>) -> Self {
        Cells {
            id: comment.get("id").map(JsonText::from),
            project: task.and_then(|task| task.get("project")),
            kind: "message",
            task_id: comment.get("taskId"),
            agent: comment.get("author"),
            body: Some(or_else(comment.get("body"), "")),
            widget: comment.get("widget"),
            created_at: Some(or_else(comment.get("createdAt"), "")),
            task,
            ..Cells::default()
        }
        .into_item()
    }

    /// How a task ended, as its latest run tells.
    pub(super) fn outcome(id: &str, run: &Record, task: &Record, completed: bool) -> Self {
        let (kind, told, otherwise) = if completed {
            ("completion", "summary", "Task completed.")
        } else {
            ("failure", "errorMessage", "run failed")
        };
        let told = run.str(told).unwrap_or_default();
        let finished = run.get("finishedAt").filter(|stamp| !stamp.is_falsy());
        Cells {
            id: Some(JsonText::of(id)),
            project: task.get("project"),
            kind,
            task_id: task.get("id"),
            body: Some(JsonText::of(text::non_empty(text::trim(&told)).unwrap_or(otherwise))),
            created_at: Some(or_else(finished.or(run.get("createdAt")), "")),
            task: Some(task),
            ..Cells::default()
        }
        .into_item()
    }
}

impl Cells<'_> {
    fn into_item(self) -> Item {
        let created_at = self.created_at.as_ref().map(JsonText::json);
        let stamp = created_at.and_then(|at| at.as_str()).unwrap_or_default().into_owned();
        let of_task = |field| self.task.and_then(|task| task.get(field));
        let null = None::<bool>;
        let columns: [(&str, &dyn ToJson); 17] = [
            ("id", &self.id),
            ("project", &self.project),
            ("type", &self.kind),
            ("taskId", &self.task_id),
            ("agentSlug", &self.agent),
            ("body", &self.body),
            ("details", &null),
            ("diffPaths", &null),
            ("widget", &self.widget),
            ("workProductId", &self.work_product),
            ("createdAt", &self.created_at),
            ("resolvedAt", &null),
            ("response", &null),
            ("taskTitle", &of_task("title")),
            ("taskNumber", &of_task("number")),
            ("sourceCardId", &self.card.and_then(|card| card.get("id"))),
            ("card", &self.card),
        ];
        let mut json = String::with_capacity(512 + self.card.map_or(0, |card| card.text().len()));
        for (at, (column, value)) in columns.into_iter().enumerate() {
            json.push_str(if at == 0 { "{" } else { "," });
            column.write_json(&mut json);
            json.push(':');
            value.write_json(&mut json);
        }
        json.push('}');
        Item { stamp, json }
    }
}

/// The id an outcome is dismissed by; a run without an id leaves its place empty.
pub(super) fn outcome_id(run: &Record, completed: bool) -> String {
    let kind = if completed { "completion" } else { "failure" };
    let id = run.get("id").filter(|id| !id.is_null()).map(text::member_text).unwrap_or_default();
    format!("derived:{kind}:{id}")
}

/// The value, or this text for a falsy one (the app-store contract, notation).
fn or_else(value: Option<JsonRef<'_>>, otherwise: &str) -> JsonText {
    match value.filter(|value| !value.is_falsy()) {
        Some(value) => value.into(),
        None => JsonText::of(otherwise),
    }
}
