//! [`Scripted`]: replies from a file, for tests and `--dry-run`.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde_json::Value;

use super::{Chat, Provider, ProviderError};
use crate::error::HostError;

/// Faults that the end of a script names.
const FAULTS: usize = 5;

/// Answers with the replies of a script, in order, whoever asks.
///
/// A script is a JSON list, or a file of one reply per line. A text is the reply as it stands, an object is its JSON
/// text, so that a decision can be written as one; a line that is not JSON is the reply as it stands. The objects
/// `{"unavailable": "why"}` and `{"refused": "why"}` are failures of the provider.
#[derive(Debug)]
pub struct Scripted {
    replies: Vec<Scene>,
    /// Where in the script each reply stands, in words.
    places: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    /// What was wrong with replies, each with its place.
    faults: Vec<String>,
    has_run_out: bool,
}

#[derive(Debug, Clone)]
enum Scene {
    Reply(String),
    Failure(ProviderError),
}

impl Scripted {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// The file cannot be read, or has no reply.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| HostError::io("read", path, &error))?;
        Self::parse(&text)
            .map_err(|message| HostError::Config { place: path.display().to_string(), message })
    }

    /// Reads a script.
    ///
    /// # Errors
    /// It has no reply, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (places, replies): (Vec<String>, Vec<Scene>) =
            match serde_json::from_str::<Vec<Value>>(text) {
                Ok(list) => {
                    (1..).zip(list).map(|(at, value)| (format!("reply {at}"), scene(value))).unzip()
                }
                Err(_) => (1..)
                    .zip(text.lines())
                    .filter(|(_, line)| !line.trim().is_empty())
                    .map(|(at, line)| {
                        let scene = match serde_json::from_str(line) {
                            Ok(value) => scene(value),
                            Err(_) => Scene::Reply(line.to_owned()),
                        };
                        (format!("line {at}"), scene)
                    })
                    .unzip(),
            };
        if replies.is_empty() {
            return Err("the script has no reply: write a JSON list, or one reply per line".into());
        }
        Ok(Self { replies, places, state: Mutex::default() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That all replies are taken, and which of them came to nothing.
    fn end(&self, state: &State) -> String {
        let mut text = match self.replies.len() {
            1 => "the script has one reply and it is taken".to_owned(),
            count => format!("the script has {count} replies and all are taken"),
        };
        for fault in state.faults.iter().take(FAULTS) {
            text.push_str("; ");
            text.push_str(fault);
        }
        text
    }
}

fn scene(value: Value) -> Scene {
    let failure = |key: &str| {
        let only = value.as_object().is_some_and(|map| map.len() == 1);
        value.get(key).filter(|_| only).and_then(Value::as_str).map(str::to_owned)
    };
    if let Some(message) = failure("unavailable") {
        return Scene::Failure(ProviderError::Unavailable { message });
    }
    if let Some(message) = failure("refused") {
        return Scene::Failure(ProviderError::Refused { message });
    }
    Scene::Reply(match value {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

impl Provider for Scripted {
    fn complete(&self, _: &Chat<'_>) -> Result<String, ProviderError> {
        let mut state = self.state();
        let Some(scene) = self.replies.get(state.next) else {
            state.has_run_out = true;
            return Err(ProviderError::Refused { message: self.end(&state) });
        };
        state.next += 1;
        match scene {
            Scene::Reply(text) => Ok(text.clone()),
            Scene::Failure(error) => Err(error.clone()),
        }
    }

    fn position(&self) -> Option<usize> {
        Some(self.state().next)
    }

    fn seek(&self, position: usize) {
        self.state().next = position;
    }

    fn unusable(&self, reply: &str, why: &str) {
        let mut state = self.state();
        let is_it = |scene: &Scene| matches!(scene, Scene::Reply(text) if text == reply);
        let taken = &self.replies[..state.next.min(self.replies.len())];
        let Some(at) = taken.iter().rposition(is_it) else { return };
        let fault = format!("{} {why}", self.places[at]);
        if !state.faults.contains(&fault) {
            tracing::warn!(target: "udf_host::agent", "of the script, {fault}");
            state.faults.push(fault);
        }
    }

    fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    fn ran_out(&self) -> Option<String> {
        let state = self.state();
        state.has_run_out.then(|| self.end(&state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(script: &str) -> Vec<Result<String, ProviderError>> {
        let scripted = Scripted::parse(script).unwrap();
        (0..scripted.replies.len())
            .map(|_| scripted.complete(&Chat { system: "", messages: &[] }))
            .collect()
    }

    #[test]
    fn a_script_is_a_list_or_lines() {
        let want = vec![Ok("a".to_owned()), Ok("{\"actions\":[]}".to_owned())];
        for script in
            ["[\"a\", {\"actions\": []}]", "\"a\"\n\n{\"actions\": []}\n", "a\n{\"actions\":[]}"]
        {
            assert_eq!(all(script), want, "{script}");
        }
        assert!(matches!(
            &all("[{\"unavailable\": \"x\"}]")[..],
            [Err(ProviderError::Unavailable { .. })]
        ));
        assert!(matches!(&all("{\"refused\": \"x\"}")[..], [Err(ProviderError::Refused { .. })]));
        for empty in ["", "\n \n", "[]"] {
            assert!(Scripted::parse(empty).is_err(), "{empty:?}");
        }
    }

    #[test]
    fn a_restart_goes_on_behind_what_was_taken() {
        let scripted = Scripted::parse("a\nb").unwrap();
        let chat = Chat { system: "", messages: &[] };
        scripted.seek(1);
        assert_eq!(scripted.complete(&chat).unwrap(), "b");
        assert_eq!(scripted.position(), Some(2));
        assert_eq!(scripted.ran_out(), None);
        assert!(scripted.complete(&chat).unwrap_err().is_fatal(), "the script is at its end");
        let all_taken = "the script has 2 replies and all are taken";
        assert_eq!(scripted.ran_out().as_deref(), Some(all_taken));
    }

    #[test]
    fn the_end_of_a_script_names_what_of_it_was_of_no_use() {
        let chat = Chat { system: "", messages: &[] };
        for (script, place) in [("a\n\nb\nc", "line 3"), ("[\"a\", \"b\", \"c\"]", "reply 2")] {
            let scripted = Scripted::parse(script).unwrap();
            for reply in ["a", "b"] {
                assert_eq!(scripted.complete(&chat).unwrap(), reply);
            }
            for reply in ["b", "b", "c"] {
                scripted.unusable(reply, "is no reply");
            }
            scripted.complete(&chat).unwrap();
            let want = format!("the script has 3 replies and all are taken; {place} is no reply");
            assert_eq!(
                scripted.complete(&chat).unwrap_err(),
                ProviderError::Refused { message: want }
            );
        }
    }
}
