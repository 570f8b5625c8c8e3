//! [`Breaker`]: stops asking a provider that failed several times in a row.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Chat, Provider, ProviderError};

/// Counts failures in a row. At the limit the failure becomes fatal, and for a while nobody is asked; then one request
/// tries.
pub struct Breaker {
    provider: Box<dyn Provider>,
    limit: u32,
    rest: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    last: String,
    broken_at: Option<Instant>,
}

impl Breaker {
    /// As many failures in a row as one decision has attempts: an outage is known as one before anything is spent on
    /// it.
    pub const LIMIT: u32 = 3;
    /// How long a broken provider rests; a parked task tries again after the same time.
    pub const REST: Duration = Duration::from_secs(900);

    /// A breaker in front of `provider`.
    #[must_use]
    pub fn new(provider: Box<dyn Provider>, limit: u32, rest: Duration) -> Self {
        Self { provider, limit, rest, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Breaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Breaker").field("failures", &self.state().failures).finish_non_exhaustive()
    }
}

impl Provider for Breaker {
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
        {
            let state = self.state();
            if state.broken_at.is_some_and(|at| at.elapsed() < self.rest) {
                return Err(ProviderError::Broken {
                    failures: state.failures,
                    last: state.last.clone(),
                });
            }
        }
        let reply = self.provider.complete(chat);
        let mut state = self.state();
        match &reply {
            // Whoever answers badly is there.
            Ok(_) | Err(ProviderError::Unusable { .. }) => *state = State::default(),
            Err(ProviderError::Unavailable { message }) => {
                state.failures = state.failures.saturating_add(1);
                state.last.clone_from(message);
                if state.failures >= self.limit {
                    state.broken_at = Some(Instant::now());
                    return Err(ProviderError::Broken {
                        failures: state.failures,
                        last: state.last.clone(),
                    });
                }
            }
            Err(ProviderError::Refused { .. } | ProviderError::Broken { .. }) => {}
        }
        reply
    }

    fn behind(&self) -> Option<&dyn Provider> {
        Some(&*self.provider)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scripted;
    use super::*;

    fn ask(breaker: &Breaker) -> Result<String, ProviderError> {
        breaker.complete(&Chat { system: "", messages: &[] })
    }

    #[test]
    fn failures_in_a_row_break_and_a_rest_heals() {
        let down = r#"{"unavailable": "down"}"#;
        let script = format!("[{down}, {down}, \"a\", {down}, {down}, {down}, \"b\"]");
        let provider = || Box::new(Scripted::parse(&script).unwrap());
        let breaker = Breaker::new(provider(), 3, Duration::from_secs(900));
        for fatal in
            [Some(false), Some(false), None, Some(false), Some(false), Some(true), Some(true)]
        {
            assert_eq!(ask(&breaker).err().map(|error| error.is_fatal()), fatal);
        }
        assert_eq!(breaker.position(), Some(6), "a broken provider is not asked");

        let breaker = Breaker::new(provider(), 3, Duration::ZERO);
        let replies: Vec<_> = (0..7).map(|_| ask(&breaker)).collect();
        assert_eq!(replies[6], Ok("b".to_owned()), "after the rest it is asked again");
    }
}
