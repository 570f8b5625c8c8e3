//! Writers of one collection in this process: they run one after another on top of each other's
//! staged state under one sentinel, and one of them writes for all.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::commit::Slot;
use crate::lock::Guard;
use crate::snapshot::Snapshot;

/// How far a group may grow while others wait for the sentinel.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Transactions in one group.
    turns: usize,
    /// None begins later than this after the sentinel was taken, or than the last write took, if
    /// that is longer: on a slow disk larger groups cost others little.
    age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 512, age: Duration::from_millis(25) }
    }
}

/// Groups that follow each other closer than this are one run of work.
const RUN_GAP: Duration = Duration::from_millis(5);
/// After so long a run another program's waiter gets a moment to take the sentinel, which the
/// kernel does not hand over in order of arrival.
const MAX_RUN: Duration = Duration::from_millis(50);
const COURTESY: Duration = Duration::from_millis(1);

/// The queue of writers of one collection.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    state: Mutex<LaneState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct LaneState {
    /// Somebody holds the lane: takes the sentinel, runs a transaction, or writes.
    busy: bool,
    queue: VecDeque<Arc<Ticket>>,
    /// How many must have queued before the one who gathers a group is woken.
    gathering: Option<usize>,
    last: Option<LastGroup>,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
struct LastGroup {
    members: usize,
    took: Duration,
    ended: Instant,
    run_began: Instant,
}

/// A place in the queue.
#[derive(Debug)]
struct Ticket {
    /// Wants the lane for itself, as it holds several collections.
    alone: bool,
    turn: Mutex<Option<Turn>>,
    called: Condvar,
}

/// What a writer finds when it gets the lane.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nobody is at work: take the sentinel.
    First,
    /// A group is open: go on where the one before ended.
    Next(Batch),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lane {
    /// Waits for the lane. Who gets it must give it back: a [`Batch`] does so by itself, others
    /// call [`leave`](Self::leave).
    pub(crate) fn enter(&self, alone: bool) -> Turn {
        let ticket = {
            let mut state = lock(&self.state);
            if !state.busy {
                state.busy = true;
                return Turn::First;
            }
            let ticket = Arc::new(Ticket { alone, turn: Mutex::default(), called: Condvar::new() });
            state.queue.push_back(Arc::clone(&ticket));
            if state.gathering.is_some_and(|enough| state.queue.len() >= enough) {
                self.arrived.notify_one();
            }
            ticket
        };
        let mut turn = lock(&ticket.turn);
        loop {
            match turn.take() {
                Some(turn) => return turn,
                None => turn = ticket.called.wait(turn).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Gives the lane to the next in the queue.
    pub(crate) fn leave(&self) {
        let mut state = lock(&self.state);
        match state.queue.pop_front() {
            Some(next) => next.call(Turn::First),
            None => state.busy = false,
        }
    }

    /// Called by the first of a group before it takes the sentinel. When writers come in crowds,
    /// those who have just been answered are about to come again: waiting a moment for them makes
    /// one group of what would be two. Others who want the sentinel get their chance meanwhile.
    fn gather(&self) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        let Some(last) = state.last.filter(|last| now - last.ended < RUN_GAP) else { return };
        let courtesy = now - last.run_began > MAX_RUN;
        if courtesy && let Some(last) = &mut state.last {
            last.run_began = now;
        }
        let least = if courtesy { COURTESY } else { Duration::ZERO };
        let most = if last.members > 1 { (last.took / 8).min(COURTESY) } else { Duration::ZERO };
        let enough = last.members.saturating_sub(1);
        loop {
            let waited = now.elapsed();
            let limit = if state.queue.len() >= enough { least } else { least.max(most) };
            let Some(left) = limit.checked_sub(waited).filter(|left| !left.is_zero()) else {
                break;
            };
            state.gathering = (state.queue.len() < enough).then_some(enough);
            state =
                self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.gathering = None;
    }
}

impl Ticket {
    fn call(&self, turn: Turn) {
        *lock(&self.turn) = Some(turn);
        self.called.notify_one();
    }
}

/// An open group, owned by the one whose turn it is. Dropping it unfinished fails the group and
/// gives the lane back.
pub(crate) struct Batch {
    /// Taken out when the group ends.
    work: Option<Work>,
}

struct Work {
    slot: Arc<Slot>,
    guard: Guard,
    /// What is on disk.
    base: Snapshot,
    /// What will be: the changes of all who have had their turn. Taken by the transaction at work.
    staged: Option<Snapshot>,
    outcome: Arc<Outcome>,
    turns: usize,
    members: usize,
    began: Instant,
}

/// What became of a group; its members wait for it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    state: Mutex<OutcomeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum OutcomeState {
    #[default]
    Open,
    /// The last one to have a turn does not write: a member must.
    Handed(Batch),
    Done(Result<(), StoreError>),
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.work.as_ref().map(|work| work.members);
        f.debug_struct("Batch").field("members", &members).finish_non_exhaustive()
    }
}

impl Batch {
    /// Waits for a turn on the collection: joins the open group, or begins one.
    pub(crate) fn join(slot: &Arc<Slot>) -> Result<Self, StoreError> {
        match slot.lane.enter(false) {
            Turn::Next(batch) => Ok(batch),
            Turn::First => {
                slot.lane.gather();
                let locked = slot.lock().and_then(|(guard, base)| {
                    slot.check_writable(&base)?;
                    Ok((guard, base))
                });
                let (guard, base) = match locked {
                    Ok(locked) => locked,
                    Err(error) => {
                        slot.lane.leave();
                        return Err(error);
                    }
                };
                Ok(Self {
                    work: Some(Work {
                        slot: Arc::clone(slot),
                        guard,
                        staged: Some(base.clone()),
                        base,
                        outcome: Arc::default(),
                        turns: 0,
                        members: 0,
                        began: Instant::now(),
                    }),
                })
            }
        }
    }

    /// The state to work on; to be given back by [`put`](Self::put).
    pub(crate) fn take(&mut self) -> Snapshot {
        let staged = self.work.as_mut().and_then(|work| work.staged.take());
        staged.expect("the one whose turn it is takes the state once")
    }

    /// The state after this turn.
    pub(crate) fn put(&mut self, staged: Snapshot) {
        if let Some(work) = &mut self.work {
            work.staged = Some(staged);
        }
    }

    /// Whether the state shows changes that are not on disk yet.
    fn is_ahead(&self) -> bool {
        self.work.as_ref().is_some_and(|work| {
            work.staged.as_ref().is_some_and(|staged| staged.differs_from(&work.base))
        })
    }

    /// Ends the turn of one who has staged changes, or has seen those of others and must not
    /// report them before they are stored. Returns when they are.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let Some(work) = &mut self.work else { return Ok(()) };
        work.members += 1;
        let outcome = Arc::clone(&work.outcome);
        if let Some(batch) = self.pass_on() {
            batch.write();
        }
        outcome.wait()
    }

    /// Ends the turn and the group with it: `after` runs once all is stored, while nobody else can
    /// write.
    pub(crate) fn finish_then(mut self, after: &mut dyn FnMut()) -> Result<(), StoreError> {
        let Some(work) = &mut self.work else { return Ok(()) };
        work.members += 1;
        let outcome = Arc::clone(&work.outcome);
        self.write_then(after);
        outcome.wait()
    }

    /// Ends the turn of one who reports nothing of what it saw.
    pub(crate) fn abandon(self) {
        let Some(batch) = self.pass_on() else { return };
        if batch.work.as_ref().is_some_and(|work| work.members > 0) {
            let outcome = batch.work.as_ref().map(|work| Arc::clone(&work.outcome));
            if let Some(outcome) = outcome {
                outcome.hand(batch);
            }
        } else {
            // Nothing is staged; releases sentinel and lane.
            batch.write();
        }
    }

    /// Lets the next in the queue go on, if the group may grow; else gives the group back.
    fn pass_on(mut self) -> Option<Self> {
        let Some(work) = &mut self.work else { return None };
        work.turns += 1;
        let slot = Arc::clone(&work.slot);
        let mut state = lock(&slot.lane.state);
        let age = state.last.map_or(Duration::ZERO, |last| last.took).max(state.limits.age);
        if work.turns >= state.limits.turns || work.began.elapsed() >= age {
            drop(state);
            return Some(self);
        }
        match state.queue.front() {
            Some(next) if !next.alone => {
                let next = state.queue.pop_front();
                drop(state);
                if let Some(next) = next {
                    next.call(Turn::Next(self));
                }
                None
            }
            _ => {
                drop(state);
                Some(self)
            }
        }
    }

    /// Puts the staged state on disk, tells the members, and gives the lane back.
    fn write(self) {
        self.write_then(&mut || {});
    }

    fn write_then(mut self, after: &mut dyn FnMut()) {
        let Some(mut work) = self.work.take() else { return };
        let mut ending =
            Ending { slot: Arc::clone(&work.slot), outcome: work.outcome, result: None };
        let began = Instant::now();
        let result = match work.staged.take() {
            Some(staged) => work.slot.save(&work.guard, &work.base, staged),
            None => Err(StoreError::Abandoned { path: work.slot.path.clone() }),
        };
        if result.is_ok() {
            after();
        }
        // Others may have the sentinel before our members know.
        drop(work.guard);
        if let Ok(true) = result {
            let mut state = lock(&work.slot.lane.state);
            let ended = Instant::now();
            let run_began = match state.last {
                Some(last) if work.began - last.ended < RUN_GAP => last.run_began,
                _ => work.began,
            };
            state.last =
                Some(LastGroup { members: work.members, took: ended - began, ended, run_began });
        }
        ending.result = Some(result.map(|_| ()));
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            // Only a panic gets here.
            drop(work.guard);
            drop(Ending { slot: work.slot, outcome: work.outcome, result: None });
        }
    }
}

/// Sees to it that members and queue never wait in vain, come what may.
struct Ending {
    slot: Arc<Slot>,
    outcome: Arc<Outcome>,
    result: Option<Result<(), StoreError>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let abandoned = || Err(StoreError::Abandoned { path: self.slot.path.clone() });
        let result = self.result.take().unwrap_or_else(abandoned);
        *lock(&self.outcome.state) = OutcomeState::Done(result);
        self.outcome.changed.notify_all();
        self.slot.lane.leave();
    }
}

impl Outcome {
    fn hand(&self, batch: Batch) {
        *lock(&self.state) = OutcomeState::Handed(batch);
        self.changed.notify_one();
    }

    fn wait(&self) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                OutcomeState::Done(result) => return result.clone(),
                OutcomeState::Handed(_) => {
                    if let OutcomeState::Handed(batch) = std::mem::take(&mut *state) {
                        drop(state);
                        batch.write();
                        state = lock(&self.state);
                    }
                }
                OutcomeState::Open => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Ends a turn that staged nothing: waits only if it saw what is not stored yet.
pub(crate) fn finish_unchanged(batch: Batch) -> Result<(), StoreError> {
    if batch.is_ahead() {
        batch.finish()
    } else {
        batch.abandon();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
