//! [`Triggers`] runs every task that has something to do, for as long as the host runs.
//!
//! What wakes a task is durable where it comes from: its inbox, its cards, its runs, its own document. So there is no
//! queue to lose: this looks at what changed, and claims a task by its driver's lock before it runs it. Two hosts over
//! one state folder share the tasks, and none runs twice.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::agent_loop::AgentLoop;
use super::bell::{Bell, Stop};
use super::error::AgentError;
use super::stamp::Stamp;
use super::task_file::{TaskFile, Why};
use super::tasks::TasksError;
use super::turn::Turned;

/// How long a look may be behind what other processes did.
const LOOK: Duration = Duration::from_millis(300);
/// When a task that another process drives is looked at again.
const BUSY: Duration = Duration::from_secs(1);
/// When the catalog is looked at for a workflow that was not there.
const CATALOG: Duration = Duration::from_secs(5);
/// When a task whose state could not be written is tried again.
const FAULT: Duration = Duration::from_secs(30);

/// Runs tasks.
#[derive(Debug)]
pub struct Triggers {
    agent: AgentLoop,
    bell: Bell,
    stop: Stop,
    parallel: usize,
    known: HashMap<String, Known>,
    ended: HashSet<String>,
    running: HashSet<String>,
    common: [Stamp; 4],
    /// When the last look was, in milliseconds since 1970.
    looked: u64,
}

/// What is remembered of a task between two looks.
#[derive(Debug, Default)]
struct Known {
    stamps: [Stamp; 3],
    state_dir: String,
    /// When it is looked at although nothing changed, in milliseconds since 1970.
    due: u64,
    /// Not before this.
    rests: Option<Instant>,
}

/// A task that a worker is done with.
struct Done {
    id: String,
    rests: Option<Duration>,
}

impl Triggers {
    /// Those of this loop's tasks, at most `parallel` of them at a time. `bell` is rung by whoever of this process has
    /// something for a task.
    #[must_use]
    pub fn new(agent: AgentLoop, bell: Bell, parallel: usize) -> Self {
        let stop = agent.stop.clone();
        Self {
            agent,
            bell,
            stop,
            parallel: parallel.max(1),
            known: HashMap::new(),
            ended: HashSet::new(),
            running: HashSet::new(),
            common: Default::default(),
            looked: 0,
        }
    }

    /// Restores what a host before left, calls `ready`, and runs tasks until the loop is told to stop. Parked tasks stay
    /// parked. Returns when the turns that were under way are over.
    ///
    /// # Errors
    /// Nothing could be restored. Later faults are logged, and tried again.
    pub fn run(mut self, ready: impl FnOnce(usize)) -> Result<(), AgentError> {
        let standing = self.agent.restore()?;
        ready(standing.iter().filter(|task| !task.ghost).count());
        let (give, take) = channel::<String>();
        let (tell, told) = channel::<Done>();
        let take = Arc::new(Mutex::new(take));
        self.bell.attend(true);
        std::thread::scope(|scope| {
            for _ in 0..self.parallel {
                let (take, tell) = (Arc::clone(&take), tell.clone());
                let (agent, bell) = (self.agent.clone(), self.bell.clone());
                scope.spawn(move || work(&agent, &bell, &take, &tell));
            }
            while !self.stop.is_stopped() {
                for done in told.try_iter() {
                    self.running.remove(&done.id);
                    // Whatever happened meanwhile is looked at.
                    let rests = done.rests.map(|rest| Instant::now() + rest);
                    self.known.insert(done.id, Known { rests, ..Known::default() });
                }
                for id in self.look() {
                    self.running.insert(id.clone());
                    if give.send(id).is_err() {
                        break;
                    }
                }
                self.bell.wait(LOOK);
            }
            drop(give);
        });
        self.bell.attend(false);
        Ok(())
    }

    /// The tasks that have something to do and that nobody here runs.
    fn look(&mut self) -> Vec<String> {
        let common = self.agent.tasks().common_stamps();
        let [tasks_still, cards_still, runs_still, store_still] =
            [0, 1, 2, 3].map(|at| common[at].is_still(&self.common[at]));
        self.common = common;
        if !tasks_still {
            match self.agent.tasks().ids() {
                Ok(ids) => {
                    for id in ids {
                        if !self.ended.contains(&id) && !self.running.contains(&id) {
                            self.known.entry(id).or_default();
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(target: "udf_host::agent", "the tasks cannot be listed: {error}");
                }
            }
        }
        let now = self.agent.now();
        // With a clock that was put back no time that is remembered means anything.
        let is_put_back = now < self.looked;
        self.looked = now;
        let mut ready = Vec::new();
        let mut ended = Vec::new();
        for (id, known) in &mut self.known {
            if self.running.contains(id) || known.rests.is_some_and(|until| Instant::now() < until)
            {
                continue;
            }
            let stamps = self.agent.tasks().stamps(id, &known.state_dir);
            let still = stamps.iter().zip(&known.stamps).all(|(now, then)| now.is_still(then));
            let is_still = still && cards_still && runs_still && now < known.due && !is_put_back;
            if is_still && (store_still || !self.agent.tasks().is_forgotten(id)) {
                continue;
            }
            known.stamps = stamps;
            known.rests = None;
            match look_at(&self.agent, id) {
                Ok(Looked::Ready) => ready.push(id.clone()),
                Ok(Looked::Ended) => ended.push(id.clone()),
                Ok(Looked::Waits { due, state_dir }) => {
                    known.due = due;
                    known.state_dir = state_dir;
                }
                Err(error) => {
                    tracing::error!(target: "udf_host::agent", task = %id, "a task cannot be looked at: {error}");
                    known.rests = Some(Instant::now() + FAULT);
                }
            }
        }
        for id in ended {
            self.known.remove(&id);
            self.ended.insert(id);
        }
        ready
    }
}

enum Looked {
    Ready,
    Ended,
    Waits { due: u64, state_dir: String },
}

fn look_at(agent: &AgentLoop, id: &str) -> Result<Looked, AgentError> {
    let Some(file) = agent.tasks().read(id)? else { return Ok(Looked::Ended) };
    if file.is_ended() && !file.closing {
        return Ok(Looked::Ended);
    }
    if agent.is_ready(&file)? {
        return Ok(Looked::Ready);
    }
    let TaskFile { parked, state_dir, .. } = file;
    let due = match parked {
        Some(parked) if parked.why.ends_by_timer() => parked.wake_at,
        // An operation that comes back leaves no trace in the state folder.
        Some(parked) if parked.why == Why::NoWorkflow => agent.after(CATALOG),
        Some(_) | None => u64::MAX,
    };
    Ok(Looked::Waits { due, state_dir })
}

fn work(agent: &AgentLoop, bell: &Bell, take: &Mutex<Receiver<String>>, tell: &Sender<Done>) {
    loop {
        let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(id) = next else { return };
        // What a crash of ours leaves is what a crash of the host leaves.
        let ran = catch_unwind(AssertUnwindSafe(|| agent.run(&id)));
        let rests = match ran {
            Ok(Ok(Turned::Again | Turned::Parked(_) | Turned::Ended(_))) => None,
            Ok(Err(AgentError::Stopped)) => return,
            Ok(Err(AgentError::Tasks(TasksError::Busy(_)))) => Some(BUSY),
            Err(_) => {
                tracing::error!(target: "udf_host::agent", task = %id, "a turn crashed; the task is tried again later");
                Some(FAULT)
            }
            Ok(Err(error)) => {
                tracing::error!(target: "udf_host::agent", task = %id, "a task cannot go on: {error}");
                Some(FAULT)
            }
        };
        if tell.send(Done { id, rests }).is_err() {
            return;
        }
        bell.ring();
    }
}
