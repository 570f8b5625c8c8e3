//! [`decide`]: one decision of the model, from prompt to parsed actions (workflow-engine contract §11).

use sdk::workflow::decision::{Decision, Driver, parse};
use sdk::workflow::sync_point::{Prompt, SyncPoint};
use serde::{Deserialize, Serialize};

use super::provider::{Chat, Message, Provider, ProviderError};

/// Attempts of one decision.
pub(super) const ATTEMPTS: u32 = 3;
/// A conversation beyond this many bytes is ended: the next prompt is a full one.
const SESSION_BYTES: usize = 400_000;
/// Characters of a faulty reply that go into the feedback.
const SHOWN: usize = 2000;

/// A conversation with the model and how much of the event stream it has seen. Kept with the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    /// Tail events when a decision was last read.
    pub seen: Option<usize>,
    /// What was said.
    pub messages: Vec<Message>,
}

impl Session {
    /// Ends the conversation: the next prompt is a full one.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    fn begin(&mut self, tail: usize) -> Prompt {
        let mut point = SyncPoint::default();
        if let Some(seen) = self.seen {
            point.decided(seen);
        }
        let size: usize = self.messages.iter().map(|message| message.text.len()).sum();
        if size > SESSION_BYTES {
            point.clear();
        }
        let prompt = point.prompt(tail);
        if matches!(prompt, Prompt::Full { .. }) {
            self.end();
        }
        prompt
    }
}

/// What the model is asked.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// Which form of decision is read.
    pub driver: Driver,
    /// Tail events of the stream.
    pub tail: usize,
    /// The full prompt; built only when it is needed.
    pub full: &'a dyn Fn() -> String,
    /// The events from this position on.
    pub delta: &'a dyn Fn(usize) -> String,
    /// What this very turn is about; the last thing of the prompt, full or not.
    pub directive: Option<&'a str>,
}

impl std::fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask")
            .field("driver", &self.driver)
            .field("tail", &self.tail)
            .finish_non_exhaustive()
    }
}

/// Why there is no decision. A task raises it, a sub-agent takes it as data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The provider fails for good; not tried again in this phase.
    #[error(transparent)]
    Fatal(ProviderError),
    /// Every attempt failed.
    #[error("no usable decision in {ATTEMPTS} attempts, the last time: {last}")]
    Exhausted {
        /// The last cause.
        last: String,
        /// Whether that was the provider, not the reply.
        by_provider: bool,
    },
}

/// Asks until a decision can be read.
///
/// The session takes up prompt and reply of the attempt that worked, and nothing of the others: feedback does not pile
/// up.
///
/// # Errors
/// One of [`Undecided`]; the session is as it was, but for one that had lost its place.
pub fn decide(
    provider: &dyn Provider,
    session: &mut Session,
    ask: &Ask<'_>,
) -> Result<Vec<Decision>, Undecided> {
    let mut base = directed(ask, session.begin(ask.tail));
    let mut feedback = String::new();
    let mut attempt = 1;
    loop {
        session.messages.push(Message::user(format!("{base}{feedback}")));
        let reply = provider.complete(&Chat { system: ask.system, messages: &session.messages });
        session.messages.pop();
        let (caveat, raw) = match reply {
            // It may be the conversation that is refused: one that outgrew the model would be refused for good.
            Err(ProviderError::Refused { .. }) if !session.messages.is_empty() => {
                session.end();
                base = directed(ask, Prompt::Full { ends_session: true });
                continue;
            }
            Err(error) if error.is_fatal() => return Err(Undecided::Fatal(error)),
            Err(ProviderError::Unusable { reason, text }) => (Some(reason), Ok(text)),
            Err(error) => (None, Err(error)),
            Ok(raw) => (None, Ok(raw)),
        };
        let (cause, raw, by_provider) = match raw {
            Err(error) => (error.to_string(), String::new(), true),
            Ok(raw) => match parse(&raw, ask.driver) {
                Ok(decisions) => {
                    session.messages.push(Message::user(base));
                    session.messages.push(Message::assistant(raw));
                    session.seen = Some(ask.tail);
                    return Ok(decisions);
                }
                Err(error) => {
                    let cause = caveat.unwrap_or_else(|| error.to_string());
                    provider.unusable(&raw, &format!("is no reply that can be used: {cause}"));
                    (cause, raw, false)
                }
            },
        };
        if attempt == ATTEMPTS {
            return Err(Undecided::Exhausted { last: cause, by_provider });
        }
        attempt += 1;
        feedback = feedback_text(attempt, &cause, &raw);
    }
}

/// The prompt with its directive behind it.
fn directed(ask: &Ask<'_>, prompt: Prompt) -> String {
    let mut text = match prompt {
        Prompt::Full { .. } => (ask.full)(),
        Prompt::Delta { from } => (ask.delta)(from),
    };
    if let Some(directive) = ask.directive {
        text.push_str("\n\n<step_directive>\n");
        text.push_str(directive);
        text.push_str("\n</step_directive>");
    }
    text
}

fn feedback_text(attempt: u32, cause: &str, raw: &str) -> String {
    let raw: String = raw.chars().take(SHOWN).collect();
    format!(
        "\n\n<feedback attempt=\"{attempt} of {ATTEMPTS}\">\nYour last reply could not be used: {cause}. It was:\n\
         {raw}\nReply with one JSON object in the form described, and nothing around it.\n</feedback>"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::provider::Scripted;
    use super::*;

    /// Writes down the last message of every request.
    struct Heard(Scripted, Mutex<Vec<String>>);

    impl Provider for Heard {
        fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
            self.1.lock().unwrap().push(chat.messages.last().unwrap().text.clone());
            self.0.complete(chat)
        }
    }

    fn heard(script: &str) -> Heard {
        Heard(Scripted::parse(script).unwrap(), Mutex::default())
    }

    fn ask(
        provider: &Heard,
        session: &mut Session,
        tail: usize,
        directive: Option<&str>,
    ) -> Result<usize, Undecided> {
        let ask = Ask {
            system: "s",
            driver: Driver::Task,
            tail,
            full: &|| "FULL".to_owned(),
            delta: &|from| format!("DELTA {from}"),
            directive,
        };
        decide(provider, session, &ask).map(|decisions| decisions.len())
    }

    const GOOD: &str = r#"{"actions":[{"action_name":"a"}]}"#;

    #[test]
    fn full_then_delta_then_full_when_nothing_is_new() {
        let provider = heard(&format!("{GOOD}\n{GOOD}\n{GOOD}\n{GOOD}"));
        let mut session = Session::default();
        for (tail, messages) in [(2, 2), (5, 4), (5, 2), (9, 4)] {
            assert_eq!(ask(&provider, &mut session, tail, Some("do it")), Ok(1));
            assert_eq!(session.messages.len(), messages);
            assert_eq!(session.seen, Some(tail));
        }
        let prompts = provider.1.lock().unwrap();
        let starts: Vec<&str> =
            prompts.iter().map(|prompt| prompt.lines().next().unwrap()).collect();
        assert_eq!(starts, ["FULL", "DELTA 2", "FULL", "DELTA 5"]);
        assert!(
            prompts
                .iter()
                .all(|prompt| prompt.ends_with("\n\n<step_directive>\ndo it\n</step_directive>"))
        );
    }

    #[test]
    fn feedback_replaces_feedback_and_is_forgotten() {
        let provider = heard(&format!("[\"first\", \"second\", {GOOD}]"));
        let mut session = Session::default();
        assert_eq!(ask(&provider, &mut session, 1, None), Ok(1));
        let prompts = provider.1.lock().unwrap();
        assert_eq!(prompts[0], "FULL");
        assert!(prompts[1].contains("not_json") && prompts[1].contains("first"));
        assert!(
            prompts[2].contains("3 of 3")
                && prompts[2].contains("second")
                && !prompts[2].contains("first")
        );
        assert_eq!(session.messages[0], Message::user("FULL"));
    }

    #[test]
    fn three_failures_exhaust_and_a_fatal_one_ends_at_once() {
        let provider = heard("[\"\", {\"unavailable\": \"down\"}, \"null\", \"unasked\"]");
        let mut session = Session::default();
        let error = ask(&provider, &mut session, 1, None).unwrap_err();
        assert_eq!(error, Undecided::Exhausted { last: "null".into(), by_provider: false });
        assert_eq!(session, Session::default());
        let provider = heard("[{\"refused\": \"no key\"}, \"unasked\"]");
        let error = ask(&provider, &mut session, 1, None).unwrap_err();
        assert!(matches!(error, Undecided::Fatal(_)), "{error}");
        assert_eq!(provider.1.lock().unwrap().len(), 1);
    }

    /// Refuses whatever is longer than one message, as a service does whose model takes no more.
    struct Narrow(Mutex<Vec<usize>>);

    impl Provider for Narrow {
        fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
            self.0.lock().unwrap().push(chat.messages.len());
            match chat.messages.len() {
                1 => Ok(GOOD.to_owned()),
                _ => Err(ProviderError::Refused { message: "context length exceeded".into() }),
            }
        }
    }

    #[test]
    fn a_conversation_that_is_refused_starts_anew() {
        let provider = Narrow(Mutex::default());
        let mut session = Session::default();
        for tail in [1, 2] {
            let full = || "FULL".to_owned();
            let delta = |_| "DELTA".to_owned();
            let ask = Ask {
                system: "s",
                driver: Driver::Task,
                tail,
                full: &full,
                delta: &delta,
                directive: None,
            };
            assert_eq!(decide(&provider, &mut session, &ask).map(|it| it.len()), Ok(1));
            assert_eq!((session.messages.len(), session.seen), (2, Some(tail)));
        }
        assert_eq!(*provider.0.lock().unwrap(), [1, 3, 1]);
    }

    /// Answers as a service does whose replies have a limit.
    struct Limited(Mutex<Vec<String>>);

    impl Provider for Limited {
        fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
            let mut heard = self.0.lock().unwrap();
            heard.push(chat.messages.last().unwrap().text.clone());
            let text = if heard.len() == 1 { &GOOD[..9] } else { GOOD }.to_owned();
            Err(ProviderError::Unusable { reason: "cut off".into(), text })
        }
    }

    #[test]
    fn a_reply_that_was_cut_off_is_told_as_one_and_counts_if_it_is_whole() {
        let provider = Limited(Mutex::default());
        let full = || "FULL".to_owned();
        let delta = |_| String::new();
        let ask = Ask {
            system: "s",
            driver: Driver::Task,
            tail: 1,
            full: &full,
            delta: &delta,
            directive: None,
        };
        assert_eq!(decide(&provider, &mut Session::default(), &ask).map(|it| it.len()), Ok(1));
        let heard = provider.0.lock().unwrap();
        assert_eq!(heard.len(), 2);
        assert!(heard[1].contains("could not be used: cut off") && heard[1].contains(&GOOD[..9]));
    }

    #[test]
    fn a_conversation_that_grew_too_long_starts_anew() {
        let provider = heard(GOOD);
        let long = Message::user("x".repeat(SESSION_BYTES + 1));
        let mut session = Session { seen: Some(1), messages: vec![long] };
        assert_eq!(ask(&provider, &mut session, 4, None), Ok(1));
        assert_eq!(session.messages.len(), 2);
    }
}
