use std::collections::HashSet;

use sdk::prelude::*;

use super::item::{Item, outcome_id};
use super::join::{Key, Tasks, runs_of};
use crate::{Dismissed, card, comment};

/// The feed being assembled: cards, then messages, then outcomes, each in file order.
pub(super) struct Feed<'a> {
    project: &'a str,
    tasks: Tasks<'a>,
    dismissed: Dismissed,
    /// Tasks with a review or message in the feed: their completion would say the same again.
    reported: HashSet<Key>,
    items: Vec<Item>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(ctx: &'a Context, project: &'a str) -> Result<Self, UdfError> {
        Ok(Self {
            project,
            tasks: Tasks::new(ctx.read("tasks")?),
            dismissed: Dismissed::read(ctx)?,
            reported: HashSet::new(),
            items: Vec::new(),
        })
    }

    /// Questions and reviews. Among pending cards an unknown effect is a question, too: it must stay
    /// visible to the human.
    pub(super) fn add_cards(&mut self, cards: &Collection<'_>) {
        for card in cards.matching("status", "pending") {
            let review = card.is("effect", card::REVIEW);
            if self.shows(&card) && (review || card::wakes(&card)) {
                let task_id = Key::of(card.get("taskId"));
                let task = self.tasks.joined(&task_id);
                if review {
                    self.reported.insert(task_id);
                }
                self.items.push(Item::card(&card, task.as_ref(), review));
            }
        }
    }

    /// Comments to the human. They name no project: they show where their task does, an orphan only in
    /// the feed of all projects.
    pub(super) fn add_messages(&mut self, comments: &Collection<'_>) {
        for message in comments.matching("kind", comment::NOTIFY) {
            let task_id = Key::of(message.get("taskId"));
            let task = self.tasks.joined(&task_id);
            let shown =
                self.project.is_empty() || task.as_ref().is_some_and(|task| self.shows(task));
            if shown && !self.dismissed.hides(&message) {
                self.reported.insert(task_id);
                self.items.push(Item::message(&message, task.as_ref()));
            }
        }
    }

    /// Tasks whose latest finished run agrees with their status.
    pub(super) fn add_outcomes(&mut self, runs: &Collection<'_>) {
        for task in self.tasks.finished() {
            let Some(run) = self.outcome(&task, runs) else { continue };
            let completed = run.is("status", "completed");
            let id = outcome_id(&run, completed);
            // Dismissed run by run: the next finished run of the task surfaces again.
            if !self.dismissed.contains(&id) {
                self.items.push(Item::outcome(&id, &run, &task, completed));
            }
        }
    }

    fn outcome(&self, task: &Record, runs: &Collection<'_>) -> Option<Record> {
        let id = Key::of(task.get("id"));
        let reported = task.is("status", "completed") && self.reported.contains(&id);
        if !self.shows(task) || reported {
            return None;
        }
        let latest = latest_finished(runs_of(runs, &id))?;
        let agrees = latest.str("status").is_some_and(|status| task.is("status", &status));
        agrees.then_some(latest)
    }

    /// Tasks nobody has taken up, in file order.
    pub(super) fn pending(&self) -> Vec<Record> {
        let mut pending = self.tasks.pending();
        pending.retain(|task| self.shows(task));
        pending
    }

    /// Newest first; rows of one instant keep the order in which they were added.
    pub(super) fn into_items(mut self) -> Vec<Item> {
        self.items.sort_by(|a, b| b.stamp.cmp(&a.stamp));
        self.items
    }

    fn shows(&self, record: &Record) -> bool {
        self.project.is_empty() || record.is("project", self.project)
    }
}

/// The newest completed or failed run; of equal stamps the one later in the file.
fn latest_finished(runs: Vec<Record>) -> Option<Record> {
    let finished =
        runs.into_iter().filter(|run| run.is("status", "completed") || run.is("status", "failed"));
    let stamped = finished.map(|run| (run.str("createdAt").unwrap_or_default().into_owned(), run));
    stamped.max_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, run)| run)
}
