//! The six kinds of question, what may be answered, and what an answer stands for (§8).

use crate::codes::{Code, Refusal};

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackType {
    /// Go on or stop.
    Approval,
    /// Carry out one action or not.
    Confirmation,
    /// One of the options the asker names; they carry no workflow meaning.
    Selection,
    /// Free text.
    Clarification,
    /// Approve, send back, or stop.
    Review,
    /// What to do about a failed step.
    ErrorResolution,
}

impl FeedbackType {
    /// Every type, in the order of `valid_types`.
    pub const ALL: [FeedbackType; 6] = [
        FeedbackType::Approval,
        FeedbackType::Confirmation,
        FeedbackType::Selection,
        FeedbackType::Clarification,
        FeedbackType::Review,
        FeedbackType::ErrorResolution,
    ];

    /// The word in `type`; case counts.
    pub fn word(self) -> &'static str {
        match self {
            FeedbackType::Approval => "approval",
            FeedbackType::Confirmation => "confirmation",
            FeedbackType::Selection => "selection",
            FeedbackType::Clarification => "clarification",
            FeedbackType::Review => "review",
            FeedbackType::ErrorResolution => "error_resolution",
        }
    }

    /// The type with exactly this word.
    pub fn from_word(word: &str) -> Option<FeedbackType> {
        FeedbackType::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// As [`FeedbackType::from_word`], with the refusal of a whole operation.
    ///
    /// # Errors
    /// `INVALID_FEEDBACK_TYPE` with `valid_types`.
    pub fn check(word: &str) -> Result<FeedbackType, Refusal> {
        FeedbackType::from_word(word).ok_or_else(|| {
            let valid = FeedbackType::ALL.map(FeedbackType::word).to_vec();
            Refusal::new(
                Code::InvalidFeedbackType,
                format!("unknown type {word:?}; one of: {}", valid.join(", ")),
            )
            .with("valid_types", valid)
        })
    }

    /// What is offered when the asker names no options; empty for `selection` (which must name them) and `clarification`.
    pub fn default_options(self) -> &'static [&'static str] {
        match self {
            FeedbackType::Approval => &["approve", "reject"],
            FeedbackType::Confirmation => &["confirm", "cancel"],
            FeedbackType::Selection | FeedbackType::Clarification => &[],
            FeedbackType::Review => &["approve", "request_changes", "reject"],
            FeedbackType::ErrorResolution => &["retry", "skip", "abort"],
        }
    }
}

/// What an option means under a type, for the issue comment and the terminal.
///
/// `None` for words the type does not know, whatever another type says about them.
pub fn description(kind: &str, option: &str) -> Option<&'static str> {
    Some(match (FeedbackType::from_word(kind)?, option) {
        (FeedbackType::Approval | FeedbackType::Review, "approve") => "Continue to next phase",
        (FeedbackType::Approval | FeedbackType::Review, "reject") => "Cancel this workflow run",
        (FeedbackType::Review, "request_changes") => "Provide feedback for revision",
        (FeedbackType::Confirmation, "confirm") => "Proceed with the action",
        (FeedbackType::Confirmation, "cancel") => "Do not proceed",
        (FeedbackType::ErrorResolution, "retry") => "Attempt the step again",
        (FeedbackType::ErrorResolution, "skip") => "Skip this step and continue",
        (FeedbackType::ErrorResolution, "abort") => "Cancel this workflow run",
        _ => return None,
    })
}

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Step done, on to the next; the answer may be data.
    Continue,
    /// The same step again, with the comment as revision note.
    Revise,
    /// The same step again, error cleared.
    Retry,
    /// Step skipped, on to the next.
    Skip,
    /// The run is cancelled.
    Abort,
}

impl Action {
    /// The word in `action`.
    pub fn word(self) -> &'static str {
        match self {
            Action::Continue => "continue",
            Action::Revise => "revise",
            Action::Retry => "retry",
            Action::Skip => "skip",
            Action::Abort => "abort",
        }
    }

    /// The action a response stands for under a type (§8).
    ///
    /// In `selection` and `clarification` every answer is data. Elsewhere case does not count: an asker who offers
    /// `Reject` must never see a refusal taken as a go-ahead.
    pub fn of(kind: &str, response: &str) -> Action {
        if matches!(
            FeedbackType::from_word(kind),
            Some(FeedbackType::Selection | FeedbackType::Clarification)
        ) {
            return Action::Continue;
        }
        match response.trim().to_ascii_lowercase().as_str() {
            "request_changes" => Action::Revise,
            "retry" => Action::Retry,
            "skip" => Action::Skip,
            "reject" | "abort" | "cancel" => Action::Abort,
            _ => Action::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_case_sensitive() {
        for kind in FeedbackType::ALL {
            assert_eq!(FeedbackType::from_word(kind.word()), Some(kind));
        }
        let refusal = FeedbackType::check("Approval").unwrap_err();
        assert_eq!(refusal.code, Code::InvalidFeedbackType);
        assert_eq!(
            refusal.details["valid_types"],
            serde_json::json!([
                "approval",
                "confirmation",
                "selection",
                "clarification",
                "review",
                "error_resolution"
            ])
        );
    }

    #[test]
    fn descriptions_belong_to_a_type_and_an_option() {
        for kind in FeedbackType::ALL {
            for option in kind.default_options() {
                assert!(description(kind.word(), option).is_some(), "{kind:?} {option}");
            }
        }
        for (kind, option) in [
            ("approval", "request_changes"),
            ("approval", "Approve"),
            ("selection", "approve"),
            ("nonsense", "approve"),
        ] {
            assert_eq!(description(kind, option), None, "{kind} {option}");
        }
    }

    #[test]
    fn answers_stand_for_actions() {
        for (kind, response, want) in [
            ("approval", "approve", Action::Continue),
            ("approval", "reject", Action::Abort),
            ("approval", "Reject", Action::Abort),
            ("approval", "escalate", Action::Continue),
            ("approval", "request_changes", Action::Revise),
            ("confirmation", "confirm", Action::Continue),
            ("confirmation", "cancel", Action::Abort),
            ("review", "request_changes", Action::Revise),
            ("error_resolution", "retry", Action::Retry),
            ("error_resolution", "skip", Action::Skip),
            ("error_resolution", "abort", Action::Abort),
            ("selection", "abort", Action::Continue),
            ("clarification", "cancel", Action::Continue),
            ("nonsense", "reject", Action::Abort),
        ] {
            assert_eq!(Action::of(kind, response), want, "{kind} {response}");
        }
    }
}
