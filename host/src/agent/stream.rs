//! [`Stream`]: what happened in a task, as the model reads it. Durable, append-only; old events give way to a summary.

use core_store::{Log, StoreError};
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since 1970.
    #[serde(default)]
    pub ts: u64,
    /// `reasoning`, `action_start`, `action_end`, `user_message`, `run_finished`, `dropped`, `error`, `interrupted`.
    pub kind: String,
    /// The action, if it is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub action: String,
    /// What happened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// Bytes of one event that are kept: a reply may be as long as a service likes.
const KEPT_BYTES: usize = 100_000;
/// Bytes of the name of an action that are kept.
const NAME_BYTES: usize = 200;
/// Characters of one event that a prompt shows; of what a person said it shows all that is kept.
const SHOWN: usize = 20_000;

impl Event {
    /// An event; what is too long is cut.
    #[must_use]
    pub fn new(ts: u64, kind: &str, action: &str, text: &str) -> Self {
        let action = cut(action, NAME_BYTES);
        Self { ts, kind: kind.to_owned(), action, text: cut(text, KEPT_BYTES) }
    }

    /// The line as a prompt has it.
    fn shown(&self) -> String {
        self.line(if self.kind == "user_message" { usize::MAX } else { SHOWN })
    }

    /// `[kind action] text`, at most `most` characters of the text.
    #[must_use]
    pub fn line(&self, most: usize) -> String {
        let mut line = format!("[{}", self.kind);
        if !self.action.is_empty() {
            line.push(' ');
            line.push_str(&self.action);
        }
        line.push_str("] ");
        let mut rest = self.text.chars();
        line.extend(rest.by_ref().take(most));
        if rest.next().is_some() {
            line.push('…');
        }
        line.trim_end().to_owned()
    }
}

/// What a prompt shows of these.
fn bytes(events: &[Event]) -> usize {
    events.iter().map(|event| event.shown().len()).sum()
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end == text.len() { text.to_owned() } else { format!("{}… (cut)", &text[..end]) }
}

/// Where the summary ends. Kept with the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Events that are summarised.
    pub upto: usize,
    /// What of them is still told.
    pub text: String,
}

/// Tail events beyond which old ones are summarised, and how many stay.
const LONG: usize = 160;
const KEPT: usize = 40;
/// The same in bytes as a prompt shows them: a few long results fill it as well as many short ones.
const LONG_BYTES: usize = 300_000;
const KEPT_TAIL_BYTES: usize = 150_000;
/// Characters of one event in a summary, and of a whole summary.
const BRIEF: usize = 120;
const SUMMARY: usize = 6000;

/// The events of a task.
#[derive(Debug)]
pub struct Stream {
    log: Option<Log>,
    events: Vec<Event>,
    summary: Summary,
}

impl Stream {
    /// Opens the stream of a task.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn open(log: Log, summary: Summary) -> Result<Self, StoreError> {
        let lines = log.read()?;
        let events: Vec<Event> =
            lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let upto = summary.upto.min(events.len());
        Ok(Self { log: Some(log), events, summary: Summary { upto, ..summary } })
    }

    /// A stream that no restart needs: a sub-agent's.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { log: None, events: Vec::new(), summary: Summary::default() }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// It could not be written; it is not in the stream then.
    pub fn append(&mut self, event: Event) -> Result<(), StoreError> {
        if let Some(log) = &self.log {
            let line = serde_json::to_string(&event).expect("an event is plain data");
            log.append(&line)?;
        }
        self.events.push(event);
        Ok(())
    }

    /// All events, summarised ones included.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All events, for somebody who only reads them.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// How many events follow the summary.
    #[must_use]
    pub fn tail(&self) -> usize {
        self.events.len() - self.summary.upto
    }

    /// The summary, to be kept with the task.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The events from this position of the tail on, one line each, behind the summary if `from` is 0.
    #[must_use]
    pub fn text(&self, from: usize) -> String {
        let mut text = String::new();
        if from == 0 && !self.summary.text.is_empty() {
            text.push_str(&self.summary.text);
        }
        for event in self.events.iter().skip(self.summary.upto + from) {
            text.push_str("- ");
            text.push_str(&event.shown());
            text.push('\n');
        }
        text
    }

    /// Whether old events are to be summarised.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.tail() > LONG || bytes(&self.events[self.summary.upto..]) > LONG_BYTES
    }

    /// Summarises all but the newest events; sessions that saw them have lost their place.
    pub fn summarise(&mut self) {
        let mut end = self.events.len().saturating_sub(KEPT).max(self.summary.upto);
        while end + 1 < self.events.len() && bytes(&self.events[end..]) > KEPT_TAIL_BYTES {
            end += 1;
        }
        let mut text = String::from("Earlier, in short:\n");
        for event in &self.events[..end] {
            text.push_str("- ");
            text.push_str(&event.line(BRIEF));
            text.push('\n');
        }
        let extra = text.chars().count().saturating_sub(SUMMARY);
        if extra > 0 {
            // The newest of what is old is worth most.
            let cut = text.char_indices().nth(extra).map_or(0, |(at, _)| at);
            let cut = text[cut..].find('\n').map_or(cut, |line| cut + line + 1);
            text = format!("Earlier, in short:\n…\n{}", &text[cut..]);
        }
        self.summary = Summary { upto: end, text };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event {
        Event { ts: 1, kind: "note".into(), action: String::new(), text: format!("event {number}") }
    }

    #[test]
    fn a_stream_survives_and_its_summary_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = core_store::Store::open(core_store::StoreOptions {
            durability: core_store::Durability::Os,
        });
        let open = |summary| {
            Stream::open(store.app(folder.path()).log("agent/tasks/t", "events").unwrap(), summary)
                .unwrap()
        };
        let mut stream = open(Summary::default());
        let long = Event::new(0, "error", &"é".repeat(999), &"é".repeat(KEPT_BYTES));
        assert_eq!((long.action.chars().count(), long.text.chars().count()), (107, 50_007));
        assert_eq!(long.line(1), format!("[error {}] é…", long.action));
        for number in 0..=LONG {
            stream.append(event(number)).unwrap();
        }
        assert!(stream.is_long());
        stream.summarise();
        assert_eq!(stream.tail(), KEPT);
        assert!(!stream.is_long());
        assert!(stream.text(0).starts_with("Earlier, in short:\n- [note] event 0\n"));
        assert_eq!(stream.text(KEPT - 1), format!("- [note] event {LONG}\n"));
        stream.append(event(999)).unwrap();
        let again = open(stream.summary().clone());
        assert_eq!((again.tail(), again.text(KEPT)), (KEPT + 1, "- [note] event 999\n".to_owned()));

        // A few long ones are as much as many short ones.
        let long = Event { text: "x".repeat(12_000), ..event(0) };
        let mut few = Stream::in_memory();
        while !few.is_long() {
            few.append(long.clone()).unwrap();
        }
        assert_eq!(few.tail(), LONG_BYTES / 12_000);
        few.summarise();
        assert!(!few.is_long() && (5..=KEPT).contains(&few.tail()), "{}", few.tail());
        assert!(few.text(0).len() < KEPT_TAIL_BYTES + SUMMARY + 1000);
        // The newest stays, however long it is.
        few.append(Event::new(0, "user_message", "", &"y".repeat(400_000))).unwrap();
        few.append(Event::new(0, "user_message", "", &"z".repeat(400_000))).unwrap();
        few.summarise();
        assert_eq!(few.tail(), 1);

        for number in 0..1000 {
            stream.append(Event { text: "x".repeat(number), ..event(number) }).unwrap();
        }
        stream.summarise();
        assert!(stream.summary().text.chars().count() <= SUMMARY + 40);
    }
}
