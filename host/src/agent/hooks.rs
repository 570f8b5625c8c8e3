//! [`Listener`]: named hook points of the loop (workflow-engine contract §10). What the engine owns (leads, the end gate,
//! outcomes of agents) the loop does itself, before anybody is asked here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::task_file::TaskFile;

/// Hears what the loop does. Every method has a default that does nothing.
pub trait Listener: Send + Sync {
    /// Names it; of two of one name the first is kept.
    fn name(&self) -> &str;

    /// The host started, before restored tasks go on.
    fn boot_restore(&self) {}

    /// A message of a person reached a task; its waiting flag is cleared and saved.
    fn user_message_routed(&self, _task: &TaskFile, _text: &str) {}

    /// Whether a task may end as complete: `Some` is the refusal, the first one counts.
    fn task_end_gate(&self, _task: &TaskFile) -> Option<String> {
        None
    }

    /// An action of a task is about to be carried out.
    fn action_start(&self, _task: &TaskFile, _action: &str, _parameters: &Map<String, Value>) {}

    /// An action of a task was carried out.
    fn action_end(&self, _task: &TaskFile, _action: &str, _result: &str) {}

    /// Operations that a task without a workflow may use besides those it was given, if it was given any.
    fn conversation_actions(&self, _task: &TaskFile) -> Vec<String> {
        Vec::new()
    }

    /// A task parked, with what is shown for it.
    fn parked(&self, _task: &TaskFile, _note: &str) {}
}

/// Listeners in the order they were registered.
#[derive(Clone, Default)]
pub struct Hooks(Vec<Arc<dyn Listener>>);

impl Hooks {
    /// Adds a listener; false if there is one of this name.
    pub fn register(&mut self, listener: Arc<dyn Listener>) -> bool {
        let is_new = self.0.iter().all(|known| known.name() != listener.name());
        if is_new {
            self.0.push(listener);
        }
        is_new
    }

    /// Tells everybody; one that fails is logged and passed over.
    pub(super) fn tell(&self, hear: impl Fn(&dyn Listener)) {
        for listener in &self.0 {
            guarded(&**listener, || hear(&**listener));
        }
    }

    /// What everybody adds to a conversation.
    pub(super) fn conversation_actions(&self, task: &TaskFile) -> Vec<String> {
        let added = |listener: &Arc<dyn Listener>| {
            guarded(&**listener, || listener.conversation_actions(task)).unwrap_or_default()
        };
        self.0.iter().flat_map(added).collect()
    }

    /// The first refusal.
    pub(super) fn refusal(&self, task: &TaskFile) -> Option<String> {
        self.0
            .iter()
            .find_map(|listener| guarded(&**listener, || listener.task_end_gate(task)).flatten())
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|listener| listener.name())).finish()
    }
}

fn guarded<T>(listener: &dyn Listener, hear: impl FnOnce() -> T) -> Option<T> {
    let heard = catch_unwind(AssertUnwindSafe(hear));
    if heard.is_err() {
        tracing::error!(target: "udf_host::agent", listener = listener.name(), "a listener failed and was passed over");
    }
    heard.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(&'static str, Option<&'static str>);

    impl Listener for Says {
        fn name(&self) -> &str {
            self.0
        }
        fn task_end_gate(&self, _: &TaskFile) -> Option<String> {
            assert_ne!(self.0, "fails");
            self.1.map(str::to_owned)
        }
        fn conversation_actions(&self, _: &TaskFile) -> Vec<String> {
            assert_ne!(self.0, "fails");
            self.1.iter().map(|name| format!("a.b.{name}")).collect()
        }
    }

    #[test]
    fn the_first_refusal_counts_and_failures_are_passed_over() {
        let mut hooks = Hooks::default();
        for listener in
            [Says("fails", None), Says("a", None), Says("b", Some("no")), Says("c", Some("later"))]
        {
            assert!(hooks.register(Arc::new(listener)));
        }
        assert!(!hooks.register(Arc::new(Says("a", Some("again")))));
        assert_eq!(hooks.refusal(&TaskFile::default()).as_deref(), Some("no"));
        assert_eq!(hooks.conversation_actions(&TaskFile::default()), ["a.b.no", "a.b.later"]);
    }
}
