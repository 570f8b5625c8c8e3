//! [`Scripted`]: replies from a file, for tests and `--dry-run`.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde_json::Value;

use super::{Chat, Provider, ProviderError};
use crate::error::HostError;

/// Answers with the replies of a script, in order, whoever asks.
///
/// A script is a JSON list, or a file of one reply per line. A text is the reply as it stands, an object is its JSON
/// text, so that a decision can be written as one; a line that is not JSON is the reply as it stands. The objects
/// `{"unavailable": "why"}` and `{"refused": "why"}` are failures of the provider.
#[derive(Debug)]
pub struct Scripted {
    replies: Vec<Scene>,
    next: Mutex<usize>,
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
        let replies: Vec<Scene> = match serde_json::from_str::<Vec<Value>>(text) {
            Ok(list) => list.into_iter().map(scene).collect(),
            Err(_) => text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(|line| match serde_json::from_str(line) {
                    Ok(value) => scene(value),
                    Err(_) => Scene::Reply(line.to_owned()),
                })
                .collect(),
        };
        if replies.is_empty() {
            return Err("the script has no reply: write a JSON list, or one reply per line".into());
        }
        Ok(Self { replies, next: Mutex::new(0) })
    }

    fn next(&self) -> std::sync::MutexGuard<'_, usize> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut next = self.next();
        let Some(scene) = self.replies.get(*next) else {
            let message =
                format!("the script has {} replies and all are taken", self.replies.len());
            return Err(ProviderError::Refused { message });
        };
        *next += 1;
        match scene {
            Scene::Reply(text) => Ok(text.clone()),
            Scene::Failure(error) => Err(error.clone()),
        }
    }

    fn position(&self) -> Option<usize> {
        Some(*self.next())
    }

    fn seek(&self, position: usize) {
        *self.next() = position;
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
        assert!(scripted.complete(&chat).unwrap_err().is_fatal(), "the script is at its end");
    }
}
