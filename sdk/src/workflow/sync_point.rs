//! Which prompt a decision begins with (workflow-engine contract §11): the full one, or only what
//! happened since the last decision.

/// How much of its event stream a provider session has seen: the number of tail events when a decision
/// was last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncPoint(Option<usize>);

/// What the next prompt is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Everything, in a new session. `ends_session`: the old one is to be ended first.
    Full {
        /// There is a session that has lost its place.
        ends_session: bool,
    },
    /// The tail events from this position on.
    Delta {
        /// Position of the first new event.
        from: usize,
    },
}

impl SyncPoint {
    /// Chooses the prompt for a stream with `tail` events, dropping a point that lost its place.
    pub fn prompt(&mut self, tail: usize) -> Prompt {
        match self.0 {
            Some(seen) if seen < tail => Prompt::Delta { from: seen },
            Some(_) => {
                self.0 = None;
                Prompt::Full { ends_session: true }
            }
            None => Prompt::Full { ends_session: false },
        }
    }

    /// A decision was read when the stream had `tail` events.
    pub fn decided(&mut self, tail: usize) {
        self.0 = Some(tail);
    }

    /// The stream was summarised, or the task changed hands.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_then_delta_then_full_again() {
        let mut point = SyncPoint::default();
        assert_eq!(point.prompt(0), Prompt::Full { ends_session: false });
        point.decided(2);
        assert_eq!(point.prompt(5), Prompt::Delta { from: 2 });
        assert_eq!(point.prompt(2), Prompt::Full { ends_session: true }, "nothing new");
        assert_eq!(
            point.prompt(9),
            Prompt::Full { ends_session: false },
            "until a decision is read"
        );
        point.decided(9);
        assert_eq!(point.prompt(3), Prompt::Full { ends_session: true }, "summarised away");
        point.decided(3);
        point.clear();
        assert_eq!(point.prompt(4), Prompt::Full { ends_session: false });
    }
}
