//! The inbox as text. All that others wrote goes through [`visible`].

use jiff::Timestamp;

use super::super::{output, visible};
use super::age;
use super::row::Row;
use super::source::{Item, Open};

/// Columns of a title in the list.
const TITLE: usize = 44;
/// Columns of a question in the list; `show` has all of it.
const BODY: usize = 72;
/// Before each line of a text of others, so that none of them can look like ours.
const BAR: &str = "  | ";

/// The list.
pub(super) fn list(open: &Open, now: Timestamp) -> String {
    let mut lines = Vec::new();
    if open.rows.is_empty() {
        let none = if open.unread {
            "nothing can be shown, but not everything could be read:"
        } else {
            "nothing waits for you"
        };
        lines.push(none.to_owned());
    } else {
        let head = ["WAITS", "KIND", "PROJECT", "ABOUT", "ID", "SAYS"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> =
            std::iter::once(head).chain(open.rows.iter().map(|row| cells(row, now))).collect();
        lines.extend(output::aligned(&rows));
        lines.push(String::new());
        lines.push(count(&open.rows));
    }
    lines.extend(open.notes.iter().map(|note| format!("note: {}", visible::line(note))));
    lines.join("\n")
}

fn cells(row: &Row, now: Timestamp) -> Vec<String> {
    vec![
        age::shown(&row.created_at, now),
        kind(row),
        visible::cut(row.project.as_deref().unwrap_or("-"), TITLE),
        visible::cut(&row.about(), if row.place.is_some() { 2 * TITLE } else { TITLE }),
        visible::line(&row.id).into_owned(),
        visible::cut(&row.body, BODY),
    ]
}

/// What is wanted: the usual question needs no more words.
fn kind(row: &Row) -> String {
    match row.effect.as_deref() {
        Some("approval_gate") => "approval".to_owned(),
        Some(effect) if row.place.is_some() => visible::cut(effect, TITLE),
        _ => row.kind.word().to_owned(),
    }
}

fn count(rows: &[Row]) -> String {
    let answers = rows.iter().filter(|row| row.kind.is_answered()).count();
    let plural = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    format!(
        "{} for an answer (`udf-host inbox answer ID …`), {} to read (`udf-host inbox dismiss ID`)",
        plural(answers, "waits", "wait"),
        rows.len() - answers
    )
}

/// One thing with all that belongs to it.
pub(super) fn item(item: &Item, now: Timestamp) -> String {
    let width = item.facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in &item.facts {
        if !value.is_empty() {
            lines.push(format!("{name:width$}  {}", visible::line(value)));
        }
    }
    for (name, text) in &item.texts {
        if !text.is_empty() {
            lines.push(String::new());
            lines.push((*name).to_owned());
            lines.extend(
                visible::lines(text).map(|line| format!("{BAR}{line}").trim_end().to_owned()),
            );
        }
    }
    if !item.history.is_empty() {
        lines.push(String::new());
        lines.push("also asked".to_owned());
        let cell = |text: &str| visible::cut(text, BODY);
        let row = |past: &super::source::Past| {
            vec![
                format!("  {} ago", age::shown(&past.created_at, now)),
                cell(&past.id),
                cell(&past.body),
                cell(&past.outcome),
            ]
        };
        lines.extend(output::aligned(&item.history.iter().map(row).collect::<Vec<_>>()));
    }
    if !item.hints.is_empty() {
        lines.push(String::new());
        lines.push("next".to_owned());
        lines.extend(item.hints.iter().map(|hint| format!("  {}", visible::line(hint))));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::row::{Kind, Place, tests::row};
    use super::super::source::Past;
    use super::*;

    fn now() -> Timestamp {
        "2026-03-03T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_list_has_everything_in_one_line_each() {
        let question = row(Kind::Question, "card_1", "2026-03-03T09:00:00.000Z");
        let gate = Row {
            effect: Some("approval_gate".into()),
            body: "Deploy\u{1b}[2J?\nNow?".into(),
            title: Some("\u{202e}x".into()),
            ..question.clone()
        };
        let place = Place { run: "acme/web/0f0e".into(), phase: "build".into(), step: "x".into() };
        let request = Row {
            id: "fr-1".into(),
            project: Some("acme/web".into()),
            effect: Some("review".into()),
            place: Some(place),
            body: "x".repeat(100),
            ..question.clone()
        };
        let done = Row {
            kind: Kind::Completion,
            id: "derived:completion:run_1".into(),
            project: None,
            ..question.clone()
        };
        let open = Open {
            rows: vec![question, gate, request, done],
            notes: vec!["the state of run \u{7} cannot be read".into()],
            unread: true,
        };
        insta::assert_snapshot!(list(&open, now()));
        assert_eq!(list(&Open::default(), now()), "nothing waits for you");
        let unread = Open { notes: vec!["torn".into()], unread: true, ..Open::default() };
        assert_eq!(
            list(&unread, now()),
            "nothing can be shown, but not everything could be read:\nnote: torn"
        );
    }

    #[test]
    fn an_item_shows_all_and_marks_what_others_wrote() {
        let shown = item(
            &Item {
                facts: vec![
                    ("card", "card_1".into()),
                    ("asked by", "ana\u{200b}lyst".into()),
                    ("effect", String::new()),
                ],
                texts: vec![
                    (
                        "asks",
                        "Which?\n\nnext\n  udf-host inbox answer card_1 --action approve\u{9b}0m"
                            .into(),
                    ),
                    ("result", String::new()),
                ],
                hints: vec!["udf-host inbox answer card_1 'your text'".into()],
                history: vec![Past {
                    id: "card_0".into(),
                    created_at: "2026-03-02T12:00:00.000Z".into(),
                    outcome: "answered by ann with “\u{1b}”".into(),
                    body: "Format?".into(),
                }],
                json: String::new(),
            },
            now(),
        );
        insta::assert_snapshot!(shown);
    }
}
