//! All runs below a base: exactly three levels, names that form a run id (§14).

use std::fmt;

use sdk::{Context, Folder};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::codes::Code;
use crate::json::has_exponent;
use crate::outcome::Stop;
use crate::query::Filter;
use crate::run_id::{RunId, RunPaths};
use crate::state::State;

/// States that are in memory at one time.
const AT_ONCE: usize = 512;

/// Brackets in a state that cannot be nested too deeply.
const SHALLOW: usize = 100;

/// The runs below a base.
#[derive(Debug)]
pub struct Runs<'c> {
    base: Folder<'c>,
}

impl<'c> Runs<'c> {
    /// `base_path` empty is the default; a base that does not exist has no runs.
    ///
    /// # Errors
    /// A fault of the host.
    pub fn open(ctx: &'c Context, base_path: &str) -> Result<Runs<'c>, Stop> {
        // Nothing is ever locked at this level.
        Ok(Runs { base: ctx.folder(RunPaths::base(base_path), "", ".lock")? })
    }

    /// Calls `each` with every run that `filter` wants by its id, and its state; the reason if that cannot be read.
    /// A directory without state is no run.
    ///
    /// # Errors
    /// `STATE_CORRUPTED` if a directory cannot be listed.
    pub fn each(
        &self,
        filter: &Filter<'_>,
        mut each: impl FnMut(RunId, Result<State, Stop>),
    ) -> Result<(), Stop> {
        self.each_text(filter, |run_id, text| each(run_id, text.and_then(|text| parse(&text))))
    }

    /// As [`Runs::each`], without the runs that wait for nobody: most are like that, and a look over their bytes tells.
    /// Of the others only the members that say what they wait for.
    ///
    /// # Errors
    /// As [`Runs::each`].
    pub fn each_waiting(
        &self,
        filter: &Filter<'_>,
        mut each: impl FnMut(RunId, Result<State, Stop>),
    ) -> Result<(), Stop> {
        self.each_text(filter, |run_id, text| match text {
            Ok(text) if is_idle(&text) => {}
            text => each(run_id, text.and_then(|text| parse_waiting(&text))),
        })
    }

    /// As [`Runs::each`], without the runs that nobody was ever asked about.
    ///
    /// # Errors
    /// As [`Runs::each`].
    pub fn each_asked(
        &self,
        filter: &Filter<'_>,
        mut each: impl FnMut(RunId, Result<State, Stop>),
    ) -> Result<(), Stop> {
        self.each_text(filter, |run_id, text| match text {
            Ok(text) if !text.contains("feedback_history") && is_idle(&text) => {}
            text => each(run_id, text.and_then(|text| parse(&text))),
        })
    }

    fn each_text(
        &self,
        filter: &Filter<'_>,
        mut each: impl FnMut(RunId, Result<String, Stop>),
    ) -> Result<(), Stop> {
        for org in self.directories("")?.iter().filter(|org| filter.wants_org(org)) {
            for project in
                self.directories(org)?.iter().filter(|project| filter.wants_project(project))
            {
                let uuids = self.directories(&format!("{org}/{project}"))?;
                let ids: Vec<RunId> = uuids
                    .iter()
                    .filter_map(|uuid| RunId::from_segments(org, project, uuid))
                    .collect();
                for some in ids.chunks(AT_ONCE) {
                    let names: Vec<String> =
                        some.iter().map(|run_id| format!("{run_id}/state.json")).collect();
                    for (run_id, text) in some.iter().zip(self.base.read_all(&names)?) {
                        match text.map_err(|error| Stop::disk(error, Code::StateCorrupted)) {
                            Ok(None) => {}
                            Ok(Some(text)) => each(run_id.clone(), Ok(text)),
                            Err(Stop::Refused(refusal)) => {
                                each(run_id.clone(), Err(refusal.into()))
                            }
                            Err(failed) => return Err(failed),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn directories(&self, path: &str) -> Result<Vec<String>, Stop> {
        let entries =
            self.base.list(path).map_err(|error| Stop::disk(error, Code::StateCorrupted))?;
        let hidden = |name: &str| name.starts_with('.');
        Ok(entries
            .into_iter()
            .filter(|entry| entry.is_directory && !hidden(&entry.name))
            .map(|entry| entry.name)
            .collect())
    }
}

fn parse(text: &str) -> Result<State, Stop> {
    Ok(State::for_reading(text)?)
}

/// What [`Runs::each_waiting`] gives of a state.
const WAITING: [&str; 6] =
    ["status", "work_id", "current_phase", "current_step", "feedback_request", "resume_point"];

/// As [`parse`], but the members beside [`WAITING`], most of a state's bytes, may be missing.
fn parse_waiting(text: &str) -> Result<State, Stop> {
    if is_simple(text)
        && !has_exponent(text)
        && let Ok(Waiting(members)) = serde_json::from_str(text)
    {
        return Ok(State::from_members(members));
    }
    parse(text)
}

/// The members of [`WAITING`].
struct Waiting(Map<String, Value>);

impl<'de> Deserialize<'de> for Waiting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Waiting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a state")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Waiting, A::Error> {
                let mut members = Map::new();
                while let Some(name) = access.next_key::<&str>()? {
                    if WAITING.contains(&name) {
                        members.insert(name.to_owned(), access.next_value()?);
                    } else {
                        access.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Waiting(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Whether this is the state of a run that waits for nobody. `false` also when only a full look can tell.
fn is_idle(text: &str) -> bool {
    !text.contains("awaiting_feedback")
        && is_simple(text)
        && text.trim_start().starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether what is passed over in this text without being read could be read.
fn is_simple(text: &str) -> bool {
    // An escape may stand for any letter, and half a pair of them for a fault. What is nested too deeply to be read passes
    // as well-formed.
    !text.contains("\\u")
        && text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= SHALLOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_state_without_the_word_is_idle() {
        for (text, want) in [
            (r#"{"status": "in_progress"}"#, true),
            ("\n {} \n", true),
            (r#"{"status": "awaiting_feedback"}"#, false),
            (r#"{"status": "await\u0069ng_feedback"}"#, false),
            (r#"{"a": "\ud800"}"#, false),
            ("", false),
            ("[]", false),
            ("{} {}", false),
            ("{\"status\": \"x\"", false),
            ("{\"a\": 01}", false),
            ("{\"a\": \"\n\"}", false),
        ] {
            assert_eq!(is_idle(text), want, "{text:?}");
            if want {
                assert!(State::parse(text).is_ok_and(|state| state.open_request().is_none()));
            }
        }
    }

    #[test]
    fn what_waits_is_read_as_by_a_full_look() {
        let request = r#""feedback_request": {"request_id": "é \"q\"", "options": ["a"], "context": {"n": 1.50}}"#;
        for (more, whole) in [
            ("", false),
            (
                r#", "phases": {"build": {"steps": [{"n": 12345678901234567890123, "s": "x"}]}}"#,
                false,
            ),
            (r#", "errors": [1e5]"#, true),
            (r#", "errors": ["\u00e9"]"#, true),
            (r#", "\"": 1"#, true),
            (r#", "status": "awaiting_feedback", "a": null"#, false),
        ] {
            let text = format!(
                r#"{{"x": 1, {request}, "work_id": 7, "status": "awaiting_feedback"{more}}}"#
            );
            let (full, found) = (State::parse(&text).unwrap(), parse_waiting(&text).unwrap());
            for name in WAITING {
                let texts = [&full, &found].map(|state| state.value(name).to_string());
                assert_eq!(texts[0], texts[1], "{name} of {text}");
            }
            assert_eq!(found.get("x").is_some(), whole, "{text}");
        }
        for text in [
            "",
            "[]",
            r#"{"status": "awaiting_feedback""#,
            r#"{"status": "awaiting_feedback", "a": "\ud800"}"#,
            r#"{"status": "awaiting_feedback", "a": 01}"#,
            r#"{"status": "awaiting_feedback"} {}"#,
        ] {
            assert!(parse_waiting(text).is_err() && State::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_idle_is_a_state_of_any_depth_and_number() {
        let deep = |depth: usize| format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
        for depth in [1, 100, 126, 127, 128, 200] {
            let text = deep(depth);
            assert!(!is_idle(&text) || State::parse(&text).is_ok(), "{depth}");
        }
        assert!(is_idle("{\"a\": 1e999}") == State::parse("{\"a\": 1e999}").is_ok());
    }
}
