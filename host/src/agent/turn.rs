//! One turn of a task, from its trigger to its durable outcome.
//!
//! Before an action is carried out its name is saved. A host that dies in between finds it at the next start, tells the
//! task that its outcome is unknown, and does not repeat it; a workflow chooses by its own durable state anyway.

use super::act::{self, Act};
use super::agent_loop::AgentLoop;
use super::error::AgentError;
use super::provider::{Metered, Provider};
use super::stream::Event;
use super::task_file::{Parked, Status, TaskFile};
use super::task_turn::{TaskTurn, TurnError};
use super::tasks::OpenTask;
use super::workflow::WorkflowClient;

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// The next turn can follow at once.
    Again,
    /// The task waits.
    Parked(Parked),
    /// The task came to an end.
    Ended(Status),
}

impl AgentLoop {
    /// Turns until the task parks or ends.
    ///
    /// # Errors
    /// As [`AgentLoop::turn`].
    pub fn run(&self, id: &str) -> Result<Turned, AgentError> {
        self.drive(id, |task| {
            loop {
                match self.turn_of(task)? {
                    Turned::Again => {}
                    turned => return Ok(turned),
                }
            }
        })
    }

    /// One turn.
    ///
    /// # Errors
    /// The task is unknown or driven by another, or its state cannot be written. What fails inside a turn is an event of
    /// the task, not an error.
    pub fn turn(&self, id: &str) -> Result<Turned, AgentError> {
        self.drive(id, |task| self.turn_of(task))
    }

    /// Takes a task and drives it. One that came to its end is moved aside.
    fn drive(
        &self,
        id: &str,
        how: impl FnOnce(&mut OpenTask) -> Result<Turned, AgentError>,
    ) -> Result<Turned, AgentError> {
        if let Some(file) = self.tasks.read(id)?
            && file.is_ended()
            && !file.closing
        {
            return Ok(Turned::Ended(file.status));
        }
        let mut task = self.tasks.open(id)?;
        self.provider.seek(task.file.position);
        let turned = how(&mut task)?;
        self.put_aside(task);
        Ok(turned)
    }

    /// Moves a task aside if it is over. What fails here is done by the next start.
    pub(super) fn put_aside(&self, task: OpenTask) {
        if !task.file.is_ended() || task.file.closing {
            return;
        }
        let id = task.file.id.clone();
        if let Err(error) = self.tasks.put_aside(task) {
            tracing::warn!(target: "udf_host::agent", task = %id, "it ended and was not moved aside: {error}");
        }
    }

    fn turn_of(&self, task: &mut OpenTask) -> Result<Turned, AgentError> {
        if self.stop.is_stopped() {
            return Err(AgentError::Stopped);
        }
        self.settle(task)?;
        if task.file.is_ended() {
            self.conclude(task)?;
            return Ok(Turned::Ended(task.file.status));
        }
        if let Some(parked) = self.take_over(task)? {
            return Ok(Turned::Parked(parked));
        }
        if let Some(parked) = self.wake(task)? {
            return Ok(Turned::Parked(parked));
        }
        if task.file.is_ended() {
            // Somebody gave it up.
            self.serve(task);
            task.file.closing = true;
            self.tasks.seal(task, false)?;
            self.conclude(task)?;
            return self.finish(task);
        }
        let file = &task.file;
        if file.unattended >= self.limits.unattended || file.spent >= self.limits.tokens {
            self.ask_to_go_on(task)?;
            return self.finish(task);
        }
        task.file.turns += 1;
        task.file.unattended += 1;
        if task.stream.is_long() {
            task.stream.summarise();
            task.session.end();
        }
        task.save()?;
        let meter = Metered::new(&*self.provider);
        let turned = self.decide_and_act(task, &meter);
        task.file.spent = task.file.spent.saturating_add(meter.tokens());
        match turned? {
            Ok(()) => {
                task.file.errors = 0;
                self.withdraw_outdated(task);
            }
            Err(error) => self.failed(task, &error)?,
        }
        self.finish(task)
    }

    fn decide_and_act(
        &self,
        task: &mut OpenTask,
        provider: &dyn Provider,
    ) -> Result<Result<(), TurnError>, AgentError> {
        // Nothing is said to a workflow, and nothing asked of it, in the name of a subject that is another task's.
        let owned = self.own(task).and_then(|owns| self.lead(task).map(|()| owns));
        let owns = match owned {
            Ok(owns) => owns,
            Err(error) => return Ok(Err(TurnError::Failed(error))),
        };
        let conversation = self.hooks.conversation_actions(&task.file);
        let turn = TaskTurn { operations: &*self.operations, provider, task, conversation };
        let decided = match turn.decide() {
            Ok(decided) => decided,
            Err(error) => return Ok(Err(error)),
        };
        if decided.has_subject
            && !owns
            && let Err(error) = self.own(task)
        {
            return Ok(Err(TurnError::Failed(error)));
        }
        if decided.batch.is_skipped() {
            let dropped = decided.batch.dropped.iter().take(act::DROPPED);
            let dropped: Vec<String> =
                dropped.map(|dropped| dropped.action_name.chars().take(100).collect()).collect();
            // The question was put; the work is scheduled again (decision O10).
            self.serve(task);
            let text = format!("nothing of the decision is allowed here: {}", dropped.join(", "));
            return Ok(Err(TurnError::Failed(text)));
        }
        Act { agent: self, task, decided: &decided, provider }.carry_out()?;
        self.serve(task);
        Ok(Ok(()))
    }

    /// Whatever the message led to was carried out; it is never served again.
    pub(super) fn serve(&self, task: &mut OpenTask) {
        if let Some(message) = task.file.message.take()
            && !message.name.starts_with("card:")
        {
            task.file.served.push(message.name);
        }
    }

    /// The end of a turn: durable, then known.
    fn finish(&self, task: &mut OpenTask) -> Result<Turned, AgentError> {
        task.file.position = self.provider.position().unwrap_or_default();
        task.save()?;
        for name in std::mem::take(&mut task.file.served) {
            self.tasks.remove(&task.file.id, &name)?;
        }
        task.save()?;
        if task.file.is_ended() {
            return Ok(Turned::Ended(task.file.status));
        }
        Ok(match &task.file.parked {
            Some(parked) => {
                self.hooks.tell(|listener| listener.parked(&task.file, &parked.note));
                Turned::Parked(parked.clone())
            }
            None => Turned::Again,
        })
    }

    fn withdraw_outdated(&self, task: &mut OpenTask) {
        let Some(card) = task.file.outdated.take() else { return };
        let is_asked = task.file.parked.as_ref().is_some_and(|it| it.card.as_ref() == Some(&card));
        if !is_asked && let Err(error) = self.human().withdraw_card(&card) {
            tracing::warn!(target: "udf_host::agent", task = %task.file.id, "{card} was not withdrawn: {error}");
        }
    }

    pub(super) fn note(
        &self,
        task: &mut OpenTask,
        kind: &str,
        action: &str,
        text: &str,
    ) -> Result<(), AgentError> {
        task.append(Event::new(self.now(), kind, action, text))?;
        Ok(())
    }

    /// Tells everybody of an end that is durable, and remembers that they were told.
    pub(super) fn conclude(&self, task: &mut OpenTask) -> Result<(), AgentError> {
        if task.file.closing {
            self.close(&task.file);
            task.file.closing = false;
            task.save()?;
        }
        Ok(())
    }

    /// A task that came to its end: the task store shows it, nobody is asked any more, and its workflow ends what it runs
    /// for it. The loop itself goes by its own document.
    fn close(&self, file: &TaskFile) {
        let human = self.human();
        if let Err(error) = human.set_status(&file.id, file.status.word()) {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "its status was not stored: {error}");
        }
        if let Err(error) = human.withdraw(&file.id) {
            tracing::warn!(target: "udf_host::agent", task = %file.id, "its cards were not withdrawn: {error}");
        }
        if file.workflow_id.is_empty() {
            return;
        }
        if let Some(place) = self.operations.workflow(&file.workflow_id) {
            let client = WorkflowClient::new(&*self.operations, &place);
            if let Err(error) = client.task_ended(&file.to_workflow(), file.status) {
                tracing::warn!(target: "udf_host::agent", task = %file.id, "its workflow did not hear of the end: {error}");
            }
        }
    }
}
