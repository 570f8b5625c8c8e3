//! Calls that nobody means and somebody makes: with a parameter that there is not, with values that make no sense.

use std::io;

use super::faults::Faults;
use super::played::{Shown, Step, Tell, Trial, envelope_of, reads_only};
use super::{Finding, Rule, values};
use crate::error::HostError;
use crate::plugins::LaneChoice;
use crate::reply::Reply;

/// The name of a parameter that nothing has.
const STRANGER: &str = "no_such_parameter";
/// After this many calls that ended their process it is clear enough; each of them costs a process.
const MOST_CRASHES: usize = 3;

impl Trial<'_> {
    /// Tells of undeclared parameters and hostile values; what lanes and repeated calls answered otherwise is noted.
    pub(super) fn odd(
        &mut self,
        shown: &Shown,
        step: &mut Step<'_>,
        tell: &mut Tell<'_>,
    ) -> io::Result<()> {
        tell(self.undeclared(shown, step)?);
        tell(self.hostile(shown, step)?);
        Ok(())
    }

    fn undeclared(&mut self, shown: &Shown, step: &mut Step<'_>) -> io::Result<Finding> {
        let (mut faults, mut calls) = (Vec::new(), 0);
        let how = format!("the undeclared parameter `{STRANGER}`");
        for lane in self.caller.lanes().to_vec() {
            for base in [&[][..], &shown.base] {
                self.reset(shown)?;
                step(Rule::Undeclared, &format!("{how} in the {} lane", lane.name()));
                let mut params = base.to_vec();
                params.push((STRANGER.to_owned(), "x".to_owned()));
                calls += 1;
                faults.extend(match self.watched(lane, &params, &how)? {
                    Err(HostError::BadParameter { message }) if message.contains(STRANGER) => None,
                    Err(HostError::BadParameter { message }) => {
                        Some(format!("{how} is refused without its name: {message}"))
                    }
                    Ok(_) => Some(format!("{how} is accepted")),
                    Err(error) => Some(format!("{how} leads to: {error}")),
                });
            }
        }
        faults.dedup();
        Ok(Finding::of(Rule::Undeclared, faults, calls))
    }

    fn hostile(&mut self, shown: &Shown, step: &mut Step<'_>) -> io::Result<Finding> {
        let (mut faults, mut calls, mut crashes) = (Faults::default(), 0, 0);
        for param in &self.subject.descriptor.params {
            for (what, text) in values::hostile() {
                let how = format!("`{}` = {what}", param.name);
                let mut params = shown.base.clone();
                params.retain(|(name, _)| *name != param.name);
                params.push((param.name.clone(), text));
                let (made, fault) = self.one(shown, &how, &params, step)?;
                calls += made;
                let Some(error) = fault else { continue };
                faults.add(&how, error.to_string());
                crashes += usize::from(ended_its_process(&error));
                if crashes == MOST_CRASHES {
                    let mut what = faults.sentences();
                    what.push(format!(
                        "after {crashes} calls that ended their process no other value was tried"
                    ));
                    return Ok(Finding::of(Rule::Hostile, what, calls));
                }
            }
        }
        Ok(Finding::of(Rule::Hostile, faults.sentences(), calls))
    }

    /// Calls with these parameters twice in the first lane and once in each other one, always on equal state. Gives
    /// the number of calls, and the failure that no call should have: where one lane has it, no other is tried.
    fn one(
        &mut self,
        shown: &Shown,
        how: &str,
        params: &[(String, String)],
        step: &mut Step<'_>,
    ) -> io::Result<(usize, Option<HostError>)> {
        let lanes = self.caller.lanes().to_vec();
        let is_steady = shown.sound && !shown.varies;
        let mut calls = 1;
        let first = match self.answer(shown, lanes[0], how, params, step)? {
            Ok(first) => first,
            Err(error) => return Ok((calls, Some(error))),
        };
        if is_steady {
            calls += 1;
            self.unsteady.calls += 1;
            match self.answer(shown, lanes[0], how, params, step)? {
                Ok(second) if second == first => {}
                Ok(_) => {
                    self.unsteady.faults.add(how, "a second equal call answers otherwise");
                    return Ok((calls, None));
                }
                Err(error) => return Ok((calls, Some(error))),
            }
        }
        for lane in &lanes[1..] {
            calls += 1;
            self.apart.calls += 1;
            let other = match self.answer(shown, *lane, how, params, step)? {
                Ok(other) => other,
                Err(error) => return Ok((calls, Some(error))),
            };
            let is_other = match is_steady {
                true => first != other,
                // Of an answer that varies only its kind can be compared.
                false => first.failed != other.failed,
            };
            if is_other {
                let lanes = format!("{} and {}", lanes[0].name(), lane.name());
                self.apart.faults.add(how, format!("the lanes {lanes} answer differently"));
            }
        }
        Ok((calls, None))
    }

    fn answer(
        &mut self,
        shown: &Shown,
        lane: LaneChoice,
        how: &str,
        params: &[(String, String)],
        step: &mut Step<'_>,
    ) -> io::Result<Result<Answer, HostError>> {
        self.reset(shown)?;
        step(Rule::Hostile, &format!("{how} in the {} lane", lane.name()));
        let outcome = self.watched(lane, params, how)?;
        Ok(Answer::of(outcome))
    }

    /// Brings back the state that the examples left behind, if the call before may have changed it.
    fn reset(&mut self, shown: &Shown) -> io::Result<()> {
        if reads_only(self.subject) { Ok(()) } else { shown.after.restore(self.place) }
    }
}

/// An answer, or a refusal that an operation may give.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    failed: bool,
    envelope: Vec<u8>,
}

impl Answer {
    /// An operation must not fail otherwise than with a refusal, whatever it is given.
    fn of(outcome: Result<Reply, HostError>) -> Result<Self, HostError> {
        match outcome {
            Ok(_)
            | Err(
                HostError::BadParameter { .. }
                | HostError::Raised { .. }
                | HostError::BadRequest { .. }
                // Told as a matter of writes.
                | HostError::Undeclared { .. },
            ) => Ok(Self { failed: outcome.is_err(), envelope: envelope_of(outcome) }),
            Err(error) => Err(error),
        }
    }
}

fn ended_its_process(error: &HostError) -> bool {
    matches!(error, HostError::Crashed { .. } | HostError::Timeout { .. })
}
