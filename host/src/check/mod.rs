//! `udf-host check`: whether an operation keeps what every operation promises.
//!
//! - [`Rule`] lists the promises; a [`Finding`] says how one fared.
//! - `declared` looks at what the operation says of itself and at its spec.md; `played` calls what that shows, `odd`
//!   what nobody would; `values` are what it is given then, `tree` tells whether a call wrote, `faults` collects.
//! - `Subject` is the operation, and `Caller` the way to it.
//!
//! Every call works in a folder made for it, in which the process stands as well: nothing here touches anybody's state.

mod declared;
mod examples;
mod faults;
mod odd;
mod played;
mod tree;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::plugins::{Address, Descriptor, LaneChoice};
use crate::reply::Reply;

/// What every operation promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// It is built, was accepted, and can be called.
    Loads,
    /// What it says of itself is complete and makes sense.
    Descriptor,
    /// Its spec.md has every section, and its Inputs table is what the operation takes.
    Spec,
    /// Every example of its spec.md answers as written.
    Examples,
    /// A parameter it does not declare is refused by name.
    Undeclared,
    /// No value, however odd, makes it panic, hang or end the process.
    Hostile,
    /// If it declares no writes, it writes nothing.
    ReadOnly,
    /// If it writes, it writes what it declares and nothing else.
    Writes,
    /// An equal call on equal state answers the same, but for what its examples write as a placeholder.
    Deterministic,
    /// It answers the same wherever its calls run.
    Lanes,
}

impl Rule {
    /// All of them, in the order in which they are looked at.
    pub const ALL: [Self; 10] = [
        Self::Loads,
        Self::Descriptor,
        Self::Spec,
        Self::Examples,
        Self::Lanes,
        Self::Deterministic,
        Self::Undeclared,
        Self::Hostile,
        Self::ReadOnly,
        Self::Writes,
    ];

    /// As `--json` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loads => "loads",
            Self::Descriptor => "descriptor",
            Self::Spec => "spec",
            Self::Examples => "examples",
            Self::Undeclared => "undeclared",
            Self::Hostile => "hostile",
            Self::ReadOnly => "read_only",
            Self::Writes => "writes",
            Self::Deterministic => "deterministic",
            Self::Lanes => "lanes",
        }
    }

    /// What its author does when the rule is broken.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Loads => "`udf-host build` says more",
            Self::Descriptor => {
                "correct the function under #[udf], its attributes or its doc comment"
            }
            Self::Spec => "correct spec.md, or the function's parameters",
            Self::Examples => "correct the example in spec.md, or the operation",
            Self::Undeclared => "take parameters by #[udf] alone, which refuses the others",
            Self::Hostile => {
                "answer such a value with `UdfError::bad_parameter` or `UdfError::raised`"
            }
            Self::ReadOnly => "declare what it writes in #[udf(..)], or do not write",
            Self::Writes => {
                "write through `ctx`, and declare each collection in #[udf(writes(..))]"
            }
            Self::Deterministic => {
                "keep state in collections only; write what must differ (ids, times) as a placeholder such as `<uuid>` in the examples"
            }
            Self::Lanes => "do not depend on the process, its memory or its environment",
        }
    }
}

/// How a rule fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which one.
    pub rule: Rule,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What breaks it, one sentence each; or why it was not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub what: Vec<String>,
    /// What its author does about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Calls that were made for it.
    #[serde(default)]
    pub calls: usize,
}

/// Whether a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Broken,
    /// It does not apply here.
    Skipped,
}

impl Finding {
    /// Holds if nothing breaks it. Of many equal faults the first few are enough to act on.
    pub(crate) fn of(rule: Rule, what: Vec<String>, calls: usize) -> Self {
        const SHOWN: usize = 8;
        let more = what.len().saturating_sub(SHOWN);
        let (verdict, remedy) = match what.is_empty() {
            true => (Verdict::Holds, String::new()),
            false => (Verdict::Broken, rule.remedy().to_owned()),
        };
        let mut what: Vec<String> = what.into_iter().take(SHOWN).collect();
        if more > 0 {
            what.push(format!("and {more} more of the kind"));
        }
        Self { rule, verdict, what, remedy, calls }
    }

    pub(crate) fn skipped(rule: Rule, why: &str) -> Self {
        let (verdict, what) = (Verdict::Skipped, vec![why.to_owned()]);
        Self { rule, verdict, what, remedy: String::new(), calls: 0 }
    }
}

/// The operation that is checked.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) address: &'a Address,
    pub(crate) descriptor: &'a Descriptor,
    pub(crate) spec: &'a str,
    /// What operations that it calls may write, theirs included.
    pub(crate) callees: &'a BTreeMap<String, Descriptor>,
}

/// The way to operations.
pub(crate) trait Caller {
    /// What `op` answers on the state in `app_dir`, its call run in `lane`.
    fn call(
        &self,
        lane: LaneChoice,
        op: &Address,
        params: &[(String, String)],
        app_dir: &Path,
    ) -> Result<Reply, HostError>;

    /// Where calls of the operation can run, the lane first that survives most. At least one.
    fn lanes(&self) -> &[LaneChoice];

    /// Why there is no other lane.
    fn only_lane(&self) -> &str;
}

/// Where calls work, below the folder that is given to [`check`]: the state folder, in which the process stands.
pub(crate) const ROOT: &str = "root";
/// The home folder of calls, beside it.
pub(crate) const HOME: &str = "home";

/// Looks at every rule but [`Rule::Loads`]. `step` is told what is about to be tried, before it may end the process;
/// `tell` gets what was found. Whatever is in `place` goes.
///
/// # Errors
/// The folder cannot be used.
pub(crate) fn check(
    subject: &Subject<'_>,
    caller: &dyn Caller,
    place: &Path,
    step: &mut dyn FnMut(Rule, &str),
    tell: &mut dyn FnMut(Finding),
) -> std::io::Result<()> {
    tell(Finding::of(Rule::Descriptor, declared::descriptor(subject), 0));
    tell(Finding::of(Rule::Spec, declared::spec(subject), 0));
    let mut trial = played::Trial::new(subject, caller, place)?;
    let shown = trial.examples(step, tell)?;
    trial.again(&shown, step)?;
    // On the state that the examples left, which is then brought back before each call.
    shown.after.restore(place)?;
    trial.odd(&shown, step, tell)?;
    trial.tell_rest(&shown, tell);
    Ok(())
}

#[cfg(test)]
mod tests;
