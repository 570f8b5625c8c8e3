//! [`Patience`]: when a build that gets nowhere is given up.
//!
//! A build script or a compiler may run for ever, or print without end, and cargo waits, and keeps what was printed.

use std::time::{Duration, Instant};

use super::steps::{Processes, Step};

/// Between two looks at what a build does.
pub(super) const LOOK: Duration = Duration::from_millis(250);
/// Between two looks at its processes.
const INSPECTION: Duration = Duration::from_secs(2);
/// Bytes of memory that cargo itself may have: what a build script prints is kept there.
const MEMORY: u64 = 512 << 20;
/// How long cargo may take to end when nothing is left of what it was asked for.
const LEAVE: Duration = Duration::from_secs(2);
/// The same when something has been saved meanwhile, or others are built after it; enough to note what is built, so that
/// it is not built again.
const LEAVE_SOON: Duration = Duration::from_millis(250);
/// The part of the limit after which a silent build gives way to what has been saved meanwhile.
const GIVES_WAY: u32 = 10;

/// Why a build was ended before it was done.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Something else has been saved, and this had not come any further for long.
    GaveWay,
    /// Somebody waits for others; it goes on after them.
    ForOthers,
    /// It came no further, or took too much; these were at work.
    GivenUp {
        /// What was too much, after `it`.
        why: String,
        steps: Vec<Step>,
    },
}

/// What to do with a build.
#[derive(Debug)]
pub(super) enum Verdict {
    GoOn,
    /// All is there; it may be ended.
    Enough,
    Stop(Stopped),
}

/// Watches over one build.
#[derive(Debug)]
pub(super) struct Patience {
    /// What one step may take.
    limit: Duration,
    session: u32,
    /// When it came further the last time.
    further: Instant,
    /// Whether it waits for another cargo, which may take as long as it takes.
    blocked: bool,
    inspected: Instant,
    /// When all that was asked for was there, and whether others are built after it.
    done: Option<(Instant, bool)>,
}

impl Patience {
    pub(super) fn new(limit: Duration, session: u32) -> Self {
        let now = Instant::now();
        Self { limit, session, further: now, blocked: false, inspected: now, done: None }
    }

    /// Something was finished or begun.
    pub(super) fn came_further(&mut self) {
        (self.further, self.blocked) = (Instant::now(), false);
    }

    /// It waits for another cargo.
    pub(super) fn is_blocked(&mut self) {
        self.blocked = true;
    }

    /// All that was asked for is there, or is known not to come; `more` is built after it.
    pub(super) fn is_done(&mut self, more: bool) {
        self.done.get_or_insert_with(|| (Instant::now(), more));
    }

    /// What to do now; `wanted` says that something has been saved meanwhile.
    pub(super) fn judge(&mut self, wanted: bool) -> Verdict {
        if let Some((done, more)) = self.done {
            let leave = if wanted || more { LEAVE_SOON } else { LEAVE };
            if done.elapsed() >= leave {
                return Verdict::Enough;
            }
        }
        if self.inspected.elapsed() >= INSPECTION {
            self.inspected = Instant::now();
            let processes = Processes::of_session(self.session);
            if processes.memory > MEMORY {
                let why = format!("prints without end ({} MiB so far)", processes.memory >> 20);
                return Verdict::Stop(Stopped::GivenUp { why, steps: processes.steps });
            }
        }
        if self.blocked {
            return Verdict::GoOn;
        }
        let still = self.further.elapsed();
        if still >= self.limit {
            let why = format!("did not end within {} s", self.limit.as_secs());
            let Processes { steps, .. } = Processes::of_session(self.session);
            return Verdict::Stop(Stopped::GivenUp { why, steps });
        }
        if wanted && still >= self.limit / GIVES_WAY {
            return Verdict::Stop(Stopped::GaveWay);
        }
        Verdict::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_build_that_gets_nowhere_is_stopped() {
        let patience = |limit| Patience::new(limit, 0);
        let (short, long) = (Duration::ZERO, Duration::from_secs(1000));
        assert!(matches!(patience(long).judge(true), Verdict::GoOn));
        assert!(matches!(patience(short).judge(false), Verdict::Stop(Stopped::GivenUp { .. })));
        let mut waits = patience(short);
        waits.is_blocked();
        assert!(matches!(waits.judge(true), Verdict::GoOn), "as long as another cargo takes");
        let mut slow = patience(long);
        slow.further = Instant::now().checked_sub(Duration::from_secs(200)).unwrap();
        assert!(matches!(slow.judge(false), Verdict::GoOn));
        assert!(matches!(slow.judge(true), Verdict::Stop(Stopped::GaveWay)));
        slow.came_further();
        assert!(matches!(slow.judge(true), Verdict::GoOn));
        let ago = |time, more| Instant::now().checked_sub(time).map(|done| (done, more));
        slow.done = ago(LEAVE, false);
        assert!(matches!(slow.judge(false), Verdict::Enough));
        slow.done = ago(LEAVE_SOON, false);
        assert!(matches!(slow.judge(true), Verdict::Enough), "somebody waits");
        slow.done = ago(LEAVE_SOON, true);
        assert!(matches!(slow.judge(false), Verdict::Enough), "others are next");
    }
}
