//! Keeps a thousand equal failures from being a thousand lines.
//!
//! The first few of a minute are logged as they come; the rest is counted, and one line at the end of the minute says
//! how many there were. Good calls are never counted away.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Target of the lines this is about: one per call or refused request, with `outcome` and mostly `op`.
pub(crate) const TARGET: &str = "udf_host::call";
/// Equal failures shown in full.
const SHOWN: u64 = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Kinds of failure told apart; beyond that operations are no longer.
const MAX_KINDS: usize = 1000;

/// The filter; clones share their counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repeats(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    kinds: HashMap<(String, String), Window>,
    reporting: bool,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    seen: u64,
}

impl Repeats {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a failure of this kind is still to be shown.
    fn show(&self, op: String, outcome: String, now: Instant) -> bool {
        let mut counts = self.counts();
        if counts.kinds.len() >= MAX_KINDS {
            counts.kinds.retain(|_, window| window.seen > SHOWN || now < window.began + WINDOW);
        }
        // Callers can make up any number of names.
        let known = outcome != "unknown" && counts.kinds.len() < MAX_KINDS;
        let kind = (if known { op } else { "any".to_owned() }, outcome);
        let window = counts.kinds.entry(kind).or_insert(Window { began: now, seen: 0 });
        if window.seen <= SHOWN && now >= window.began + WINDOW {
            *window = Window { began: now, seen: 0 };
        }
        window.seen += 1;
        if window.seen <= SHOWN {
            return true;
        }
        if !std::mem::replace(&mut counts.reporting, true) {
            drop(counts);
            self.report_later();
        }
        false
    }

    fn report_later(&self) {
        let repeats = self.clone();
        let reporting = thread::Builder::new().name("log-repeats".to_owned()).spawn(move || {
            thread::sleep(WINDOW);
            repeats.report();
        });
        if reporting.is_err() {
            // No thread to be had now; the next failure tries again.
            self.counts().reporting = false;
        }
    }

    /// Logs what was counted and not shown, and starts anew.
    pub(crate) fn report(&self) {
        for ((op, outcome), more) in self.take() {
            tracing::warn!(op, outcome, more, "equal failures within a minute, not shown");
        }
    }

    fn take(&self) -> Vec<((String, String), u64)> {
        let mut counts = self.counts();
        counts.reporting = false;
        let mut hidden: Vec<_> = std::mem::take(&mut counts.kinds)
            .into_iter()
            .filter_map(|(kind, window)| {
                Some((kind, window.seen.checked_sub(SHOWN).filter(|more| *more > 0)?))
            })
            .collect();
        hidden.sort();
        hidden
    }
}

impl<S: Subscriber> Filter<S> for Repeats {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        if event.metadata().target() != TARGET {
            return true;
        }
        let mut outcome = Outcome(None);
        event.record(&mut outcome);
        let Some(outcome) = outcome.0 else { return true };
        let mut op = Op(String::new());
        event.record(&mut op);
        self.show(op.0, outcome, Instant::now())
    }
}

/// The outcome, unless it is good.
struct Outcome(Option<String>);

impl Visit for Outcome {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "outcome" && value != "ok" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

struct Op(String);

impl Visit for Op {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "op" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_are_shown_and_the_rest_is_counted_by_kind() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        let shown = |op: &str, outcome: &str, times: usize| {
            (0..times).filter(|_| repeats.show(op.to_owned(), outcome.to_owned(), now)).count()
        };
        assert_eq!(shown("w.p.a", "raised", 1000), 5);
        assert_eq!(shown("w.p.b", "raised", 3), 3);
        assert_eq!(shown("w.p.a", "timeout", 6), 5);
        let kind = |op: &str, outcome: &str| (op.to_owned(), outcome.to_owned());
        assert_eq!(repeats.take(), [(kind("w.p.a", "raised"), 995), (kind("w.p.a", "timeout"), 1)]);
        assert_eq!(shown("w.p.a", "raised", 1), 1);
    }

    #[test]
    fn a_new_minute_shows_again() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        for round in 0..3 {
            for _ in 0..5 {
                assert!(repeats.show(
                    "w.p.a".to_owned(),
                    "raised".to_owned(),
                    now + WINDOW * round
                ));
            }
        }
        assert_eq!(repeats.take(), []);
    }

    #[test]
    fn made_up_names_are_one_kind() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        let shown = (0..5000)
            .filter(|n| repeats.show(format!("w.p.{n}"), "unknown".to_owned(), now))
            .count();
        assert_eq!(shown, 5);
        assert_eq!(repeats.take().len(), 1);
    }
}
